"""Networks with operators in float in their middle, on the simulator: the reference's bits."""

from __future__ import annotations

import numpy as np
import pytest
from kit.networks.random_networks import Builder, conv, dense, samples_for, window
from kit.networks.simulated import PAIRS, Simulators
from tilefarm.target import TARGETS, Target

from driver.network.graph.ir import (
    Add,
    Affine,
    Gather,
    Graph,
    MatMul,
    Normalize,
    Product,
    Reduce,
    Reshape,
    Softmax,
    Unary,
)
from driver.network.quantize.options import Quantization
from driver.network.quantize.quantizer import quantize
from driver.network.rewrites.fold import fold


def attention() -> Graph:
    """Channels of pixels, normalized, that attend to one another; a gate; and classes."""
    rng = np.random.default_rng(5)
    b = Builder((1, 3, 4, 5))
    image = b.put(conv(rng, 3, 12, window(pad=1)), "x")
    tokens = b.put(Reshape(shape=(12, 20)), image)
    normal = b.put(Normalize(axes=(1,), epsilon=1e-5), tokens)
    scale = rng.uniform(0.5, 1.5, 12).astype(np.float32)
    normal = b.put(Affine(weight=scale, bias=scale - 1), normal)
    scores = b.put(MatMul(groups=2, scale=0.4), normal, normal)
    shares = b.put(Softmax(axis=2), scores)
    mean = b.put(Reduce(kind="mean", axes=(1,)), b.put(Unary(function="gelu"), shares))
    gated = b.put(Product(), b.put(Add(), tokens, normal), mean)
    logits = b.put(dense(rng, 240, 5), b.put(Reshape(shape=(240,)), gated))
    return fold(b.graph(b.put(Softmax(), logits), scores))


@pytest.mark.parametrize(
    "target",
    [TARGETS["sim"], pytest.param(PAIRS, marks=pytest.mark.slow)],
    ids=lambda target: target.name,
)
def test_a_block_of_attention(simulators: Simulators, target: Target) -> None:
    graph = attention()
    data = samples_for(graph, 1)
    network = simulators.assert_same(quantize(graph, data, block=target.lanes.block), target, data)
    kernels = {step.workload.operator for step in network.steps}
    assert {"real_normalize", "real_softmax", "real_reduce", "matmul", "conv2d"} <= kernels


def test_all_layers_kept_in_float(simulators: Simulators) -> None:
    graph = attention()
    data = samples_for(graph, 1)
    everything = quantize(graph, data, Quantization(keep_float=("*",)))
    network = simulators.assert_same(everything, TARGETS["sim"], data)
    assert {step.place for step in network.steps} == {"cpu"}


def test_values_of_many_axes(simulators: Simulators) -> None:
    b = Builder((1, 2, 2, 3, 2, 4))
    turned = b.put(Gather(index=np.arange(96, dtype=np.int32)[::-1].reshape(2, 2, 3, 2, 4)), "x")
    normal = b.put(Normalize(axes=(5,), epsilon=0.1), b.put(Unary(function="cos"), turned))
    graph = b.graph(b.put(Unary(function="cos"), normal))
    data = samples_for(graph, 1)
    simulators.assert_same(quantize(graph, data), TARGETS["sim"], data)
