"""Each source of noise alone: the network is made so that there is no other."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from kit.networks.random_networks import Builder, window

from driver.network.accuracy.noise_sources import NoiseSources, TensorNoise, noise_sources
from driver.network.graph.ir import (
    Add,
    Affine,
    Conv2d,
    Dense,
    Graph,
    Reshape,
    Softmax,
    Unary,
)
from driver.network.integer.qir import QDense, QuantGraph
from driver.network.quantize.float_form import float_form
from driver.network.quantize.options import Activations, Quantization
from driver.network.quantize.quantizer import quantize, quantize_with

EXACT = np.arange(-127, 128, 2).astype(np.float32).reshape(-1, 1)
"""Reals that int8 with a scale of 1 says exactly."""


def dense(weight: float, bias: float = 0.0) -> Dense:
    return Dense(weight=np.array([[weight]], np.float32), bias=np.array([bias], np.float32))


def network(*layers: Dense) -> Graph:
    b = Builder((1, 1))
    name = "x"
    for layer in layers:
        name = b.put(layer, name)
    return b.graph(name)


def integers(graph: Graph, **ranges: float) -> QuantGraph:
    return quantize_with(graph, {name: ranges.get(name, 127.0) for name in graph.shapes})


def largest(each: TensorNoise) -> str:
    assert each.sources is not None
    shares = each.sources.shares()
    assert sum(shares.values()) == pytest.approx(1.0)
    return max(shares, key=lambda name: shares[name])


def test_a_layer_that_int8_says_exactly_has_no_noise() -> None:
    graph = network(dense(1.0))
    (each,) = noise_sources(graph, integers(graph), {"x": EXACT}).values()
    assert each.noise.ratio_db == math.inf
    assert each.sources == NoiseSources()
    assert set(NoiseSources().shares().values()) == {0.0}


def test_rounding() -> None:
    graph = network(dense(0.5))
    found = noise_sources(graph, integers(graph), {"x": EXACT})["t0"]
    assert largest(found) == "rounding"
    assert found.sources is not None
    assert found.sources.weights == pytest.approx(0.0, abs=1e-6)
    assert found.sources.rounding == pytest.approx(found.noise.noise)


def test_clipping() -> None:
    graph = network(dense(1.0))
    found = noise_sources(graph, integers(graph, t0=63.5), {"x": EXACT})["t0"]
    assert largest(found) == "clipping"
    assert found.noise.largest == pytest.approx(63.5, abs=1.0)


def test_weights() -> None:
    graph = network(dense(1.0))
    quantized = integers(graph)
    (node,) = (n for n in quantized.nodes if n.output == "t0")
    assert isinstance(node.op, QDense)
    other = replace(node.op, weight=(node.op.weight // 2).astype(np.int8))
    halved = replace(
        quantized,
        nodes=tuple(replace(n, op=other) if n is node else n for n in quantized.nodes),
    )
    assert largest(noise_sources(graph, halved, {"x": EXACT})["t0"]) == "weights"


def test_what_comes_before() -> None:
    graph = network(dense(0.5), dense(1.0))
    found = noise_sources(graph, integers(graph), {"x": EXACT})
    assert largest(found["t0"]) == "rounding"
    assert largest(found["t1"]) == "before"


def test_parts_of_the_samples_add_up() -> None:
    graph = network(dense(0.7), dense(1.3, 0.2))
    quantized = integers(graph)
    whole = noise_sources(graph, quantized, {"x": EXACT})["t1"]
    halves = [noise_sources(graph, quantized, {"x": part})["t1"] for part in np.split(EXACT, 2)]
    added = halves[0] + halves[1]
    assert added.noise.noise == pytest.approx(whole.noise.noise)
    assert added.sources is not None
    assert whole.sources is not None
    assert added.sources.own == pytest.approx(whole.sources.own)


@pytest.mark.parametrize("scheme", ["symmetric", "asymmetric"])
def test_the_steps_add_up_to_the_noise(scheme: Activations) -> None:
    """For every operator with weights, adds and tables; overlaps of the steps are small."""
    rng = np.random.default_rng(0)
    b = Builder((1, 6, 5, 5))
    weight = rng.normal(size=(6, 6, 3, 3)).astype(np.float32)
    bias = rng.normal(size=6).astype(np.float32)
    a = b.put(Conv2d(weight=weight, bias=bias, window=window(3, 1, 1), lo=0.0), "x")
    scaled = b.put(Affine(weight=bias + 3, bias=bias), a)
    added = b.put(Add(), scaled, "x")
    soft = b.put(Unary(function="tanh"), added)
    flat = b.put(Reshape(shape=(150,)), soft)
    scores = b.put(
        Dense(weight=rng.normal(size=(9, 150)).astype(np.float32), bias=np.zeros(9, np.float32)),
        flat,
    )
    graph = b.graph(b.put(Softmax(), scores))
    x = rng.normal(size=(40, 6, 5, 5)).astype(np.float32)
    how = Quantization(
        activations=scheme,
        correct_bias=False,  # which takes back a part of what comes before
        fit_weights=False,
    )
    found = noise_sources(float_form(graph, x, how), quantize(graph, x, how), {"x": x})
    assert len(found) >= 6
    for name, each in found.items():
        assert each.sources is not None, name
        total = each.sources.before + each.sources.own
        assert total == pytest.approx(each.noise.noise, rel=0.35), name
