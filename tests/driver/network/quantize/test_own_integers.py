"""Quantized models that answer values keep to their own integers, by weights of 16 bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kit.networks.random_networks import Builder, dense
from tilefarm.target import TARGETS

from driver.network.graph.float_run import run_float
from driver.network.graph.grid import Grid
from driver.network.graph.ir import Graph, Softmax
from driver.network.integer.noise import noise_between
from driver.network.integer.reference import run_integer
from driver.network.quantize.fitting import Fitted, fit_quantization
from driver.network.quantize.options import Quantization

SIM = TARGETS["sim"]
BYTES = Grid(8 / 255, 128, "uint8")


def autoencoder(*, is_classifier: bool = False, is_quantized: bool = True) -> Graph:
    """Dense layers to as many values as are given, whose weights are multiples of a step each.

    The steps are such that keeping the weights makes the results half as coarse again.
    """
    rng = np.random.default_rng(3)
    b = Builder((1, 64))
    name, ranges = "x", {"x": BYTES.reach}
    last = 10 if is_classifier else 64
    for ci, co in ((64, 48), (48, 48), (48, last)):
        layer = dense(rng, ci, co)
        step = np.abs(layer.weight).max() / 127
        weight = (np.rint(layer.weight / step) * step).astype(np.float32)
        is_last = co == last
        name = b.put(replace(layer, weight=weight, lo=-6.0 if is_last else 0.0, hi=6.0), name)
        ranges[name] = 6.0
    if is_classifier:
        name = b.put(Softmax(), name)
        ranges[name] = 1.0
    graph = b.graph(name)
    given = replace(graph.inputs[0], rounding=BYTES)
    return replace(graph, inputs=(given,), ranges=ranges if is_quantized else {})


def noise(graph: Graph, found: Fitted) -> float:
    x = np.random.default_rng(8).uniform(BYTES.lo, BYTES.hi, (400, 64)).astype(np.float32)
    floats, integers = run_float(graph, {"x": x}), run_integer(found.quantized, {"x": x})
    told = noise_between(floats["out0"], integers["out0"])
    return told.noise / told.signal


def test_layers_become_wide_until_hardly_more_noise_is_left() -> None:
    graph = autoencoder()
    found = fit_quantization(SIM, graph, None, Quantization())
    plain = fit_quantization(SIM, graph, None, Quantization(wide=()))
    own = fit_quantization(SIM, graph, None, Quantization(wide=("*",)))
    assert found.how.wide
    assert plain.how.wide == ()
    assert noise(graph, found) < 1.4 * noise(graph, own) < noise(graph, plain)
    (note,) = found.notes
    assert "16 bits" in note
    assert "the model's own integers" in note
    assert fit_quantization(SIM, graph, None, Quantization()).how == found.how, (
        "the same every time"
    )


def test_as_few_as_it_takes() -> None:
    found = fit_quantization(SIM, autoencoder(), None, Quantization())
    assert found.how.wide is not None
    assert len(found.how.wide) < 3


@pytest.mark.parametrize(
    ("graph", "how"),
    [
        (autoencoder(is_classifier=True), Quantization()),
        (autoencoder(), Quantization(wide=())),
        (autoencoder(), Quantization(wide=("n1",))),
    ],
    ids=["classes", "the user wants none", "the user chose"],
)
def test_nothing_is_decided_where_it_does_not_show_or_was_decided(
    graph: Graph, how: Quantization
) -> None:
    found = fit_quantization(SIM, graph, None, how)
    assert found.how == how
    assert not found.notes


def test_multiplied_sums_are_the_models_own_already() -> None:
    how = Quantization(requantize="mul")
    assert fit_quantization(TARGETS["sim-mul"], autoencoder(), None, how).how == how


def test_data_tell_it_as_well() -> None:
    graph = autoencoder()
    x = np.random.default_rng(1).uniform(BYTES.lo, BYTES.hi, (64, 64)).astype(np.float32)
    assert fit_quantization(SIM, graph, x, Quantization()).how.wide


def test_float_networks_are_another_matter() -> None:
    graph = autoencoder(is_quantized=False)
    x = np.random.default_rng(1).uniform(BYTES.lo, BYTES.hi, (64, 64)).astype(np.float32)
    assert not fit_quantization(SIM, graph, x, Quantization()).how.wide
