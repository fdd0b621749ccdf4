"""What the accelerator has an operator for, but no room, is on the processor and says why."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from kit.networks.random_networks import Builder, conv, dense, samples_for, transposed, window
from tilefarm.target import TARGETS, Target

from driver.network.graph.ir import (
    Add,
    Affine,
    Concat,
    Graph,
    MatMul,
    Operator,
    Reshape,
    Slice,
)
from driver.network.integer.network import NetworkStep
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize
from driver.program.evaluate import differing_samples

RNG = np.random.default_rng(5)
SIM = TARGETS["sim"]


CRAMPED = replace(SIM, name="cramped", limits=replace(SIM.limits, kernel_uops=1))
"""One micro-op at a time: too few for any layer."""


def steps_of(graph: Graph, target: Target = CRAMPED) -> tuple[NetworkStep, ...]:
    """The steps of a network that gives the reference's bits."""
    data = samples_for(graph, 0)
    quantized = quantize(graph, data)
    network = partition_network(quantized, target)
    one = {name: values[: graph.batch] for name, values in data.items()}
    assert differing_samples(run_network(network, one), run_integer(quantized, one)) == 0
    return network.steps


def layer(op: Operator, *, second: Operator | None = None) -> Graph:
    """One layer on 18 channels of 4x4, or of a product with itself."""
    b = Builder((1, 18, 4, 4))
    first = b.put(Affine(weight=np.full(18, 2, np.float32), bias=np.ones(18, np.float32)), "x")
    if isinstance(op, MatMul | Add):
        flat = b.put(Reshape(shape=(18, 16)), first)
        return b.graph(b.put(op, flat, flat))
    return b.graph(b.put(op, first if second is None else b.put(second, first)))


@pytest.mark.parametrize(
    ("operator", "graph"),
    [
        ("conv2d", layer(conv(RNG, 18, 5, window(3, pad=1)))),
        ("conv2d", layer(conv(RNG, 18, 18, window(3), groups=18))),
        ("conv2d", layer(Slice(start=3, stop=9))),
        ("conv2d_transpose", layer(transposed(RNG, 18, 5, (2, 1), (2, 2)))),
        ("dense", layer(dense(RNG, 288, 3), second=Reshape(shape=(288,)))),
        ("matmul", layer(MatMul())),
        ("add", layer(Add())),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_layers_without_room_are_on_the_processor(operator: str, graph: Graph) -> None:
    steps = steps_of(graph)
    assert {step.place for step in steps} == {"cpu"}
    step = steps[-2]
    assert step.workload.operator == operator
    assert re.match(r"no tiles of it fit on the accelerator: \w+: .", step.why)


def test_only_the_layer_without_room_leaves_the_accelerator() -> None:
    """A copy pads by 15 at most."""
    b = Builder((1, 16, 12, 12))
    before = b.put(conv(RNG, 16, 16, window(1)), "x")
    wide = b.put(conv(RNG, 16, 16, window(33, pad=16)), before)
    steps = steps_of(b.graph(b.put(conv(RNG, 16, 16, window(1)), wide)), SIM)
    layers = [step for step in steps if step.workload.operator == "conv2d"]
    assert [step.place for step in layers] == ["accelerator", "cpu", "accelerator"]
    assert "dma_fields: " in layers[1].why
    assert layers[1].macs == 33 * 33 * 16 * 16 * 144


def test_copies_into_a_concatenation_without_room_are_on_the_processor() -> None:
    b = Builder((1, 16, 2, 2))
    one = b.put(conv(RNG, 16, 16, window(1)), "x")
    joined = b.put(Concat(), one, one)
    steps = steps_of(b.graph(joined))
    (copy,) = [step for step in steps if step.workload.operator == "window_sum2d"]
    assert (copy.place, math.prod(copy.workload.outputs[0].shape)) == ("cpu", 64)
