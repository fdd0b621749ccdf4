"""Which borders are stored, when they are filled, and that no bit depends on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.built import needs_simulator
from kit.kernels.nests import border, conv2d, quantize
from kit.networks.random_networks import Builder, conv, window
from kit.networks.simulated import Simulators, program_of
from tilefarm.dtype import DType
from tilefarm.target import TARGETS
from tilefarm.workload import Workload

from driver.network.graph.ir import GraphInput, GraphOutput, IndexArray, Window
from driver.network.integer.network import NetworkStep, Place
from driver.network.integer.qir import (
    QAdd,
    QAffine,
    QConv2d,
    QGather,
    QReshape,
    QuantGraph,
    Quantize,
    QuantNode,
    QuantOperator,
    QuantTensor,
)
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.borders import Border, plan_borders, with_early_borders
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize as quantized_network

SIM = TARGETS["sim"]
KINDS: dict[str, tuple[Workload, Place]] = {
    "accelerator": (conv2d(), "accelerator"),
    "processor": (quantize(), "cpu"),
    "border": (border(), "cpu"),
}


def steps_of(kinds: list[str]) -> list[NetworkStep]:
    return [
        NetworkStep(
            name=f"{kind} {at}",
            workload=KINDS[kind][0],
            inputs=(),
            outputs=(),
            place=KINDS[kind][1],
            why="",
        )
        for at, kind in enumerate(kinds)
    ]


def names_of(steps: list[NetworkStep], *, borders: bool) -> list[str]:
    return [step.name for step in steps if (step.workload.operator == "border") is borders]


@given(st.lists(st.sampled_from(sorted(KINDS)), max_size=12))
def test_borders_are_filled_when_the_processor_is_at_work_anyway(kinds: list[str]) -> None:
    steps = steps_of(kinds)
    found = list(with_early_borders(steps))
    for borders in (False, True):
        assert names_of(found, borders=borders) == names_of(steps, borders=borders)
    for before, step in pairwise(found):
        if step.workload.operator == "border":
            assert before.place == "cpu"
            assert found.index(step) <= steps.index(step), "never later than it was"


def test_a_border_is_filled_after_what_the_processor_does_before_it() -> None:
    """It is early, but no earlier than it needs to be: memory that is held is memory."""
    steps = steps_of(["processor", "accelerator", "processor", "accelerator", "border"])
    (quantized, first, other, second, fill) = steps
    assert with_early_borders(steps) == (quantized, first, other, fill, second)


@dataclass(frozen=True, kw_only=True)
class Around:
    """x -> Quantize -> q -> `maker` -> t -> gather `index` -> around, and what else reads t."""

    maker: QuantOperator | None
    index: IndexArray
    dtype: DType = DType.INT8
    is_output: bool = False
    second: bool = False

    def graph(self) -> QuantGraph:
        source = "t" if self.maker is not None else "q"
        nodes = [QuantNode(name="q", op=Quantize(inv_scale=1.0), inputs=("x",), output="q")]
        if self.maker is not None:
            operands = ("q", "q") if isinstance(self.maker, QAdd) else ("q",)
            nodes.append(QuantNode(name="t", op=self.maker, inputs=operands, output="t"))
        nodes.append(
            QuantNode(
                name="g", op=QGather(index=self.index, fill=-7), inputs=(source,), output="around"
            )
        )
        if self.second:
            nodes.append(
                QuantNode(name="r", op=QReshape(shape=(12,)), inputs=(source,), output="row")
            )
        image = QuantTensor(shape=(1, 2, 2, 3), dtype=DType.INT8, scale=1.0)
        return QuantGraph(
            name="around",
            inputs=(GraphInput(name="x", shape=image.shape, axes=(0, 1, 2, 3)),),
            outputs=(GraphOutput(name="y", tensor=source if self.is_output else "around"),),
            nodes=tuple(nodes),
            tensors={
                "x": replace(image, dtype=DType.FLOAT32, scale=None),
                "q": image,
                "t": replace(image, dtype=self.dtype),
                "around": replace(image, shape=(1, *self.index.shape)),
                "row": replace(image, shape=(1, 12)),
            },
        )


NOTHING = np.zeros(2, np.int32)
CONV = QConv2d(
    weight=np.ones((2, 2, 1, 1), np.int8), bias=NOTHING, shift=NOTHING, window=Window(kernel=(1, 1))
)
AFFINE = QAffine(weight=NOTHING, bias=NOTHING, shift=NOTHING)
PAD = (1, 0, 2, 1)
PADDED = np.pad(
    np.arange(12, dtype=np.int32).reshape(2, 2, 3), ((0, 0), (1, 2), (0, 1)), constant_values=-1
)
STORED = Around(maker=CONV, index=PADDED)


@pytest.mark.parametrize("maker", [CONV, AFFINE], ids=["convolution", "affine"])
def test_a_layer_writes_into_the_middle_of_what_only_its_gather_reads(
    maker: QuantOperator,
) -> None:
    wanted = Border(around="around", pad=PAD, fill=-7)
    assert plan_borders(replace(STORED, maker=maker).graph()) == {"t": wanted}


@pytest.mark.parametrize(
    "around",
    [
        replace(STORED, second=True),
        replace(STORED, is_output=True),
        replace(STORED, dtype=DType.INT16),
        replace(STORED, maker=QAdd(mul_a=1, mul_b=1, shift=0)),
        replace(STORED, maker=None),
        replace(STORED, index=PADDED[::-1]),
    ],
    ids=["read twice", "an output", "16 bits", "an addition", "the user's image", "moves elements"],
)
def test_other_borders_are_copies(around: Around) -> None:
    assert not plan_borders(around.graph())


@needs_simulator
def test_an_image_of_many_channels_is_copied_into_its_border(tmp_path: Path) -> None:
    """Its layer reads blocks of channels, not windows: pixels of bytes, and a pad of their zero."""
    rng = np.random.default_rng(5)
    b = Builder((1, 16, 5, 4))
    graph = b.graph(b.put(conv(rng, 16, 16, window(pad=1)), "x"))
    data = {"x": rng.integers(0, 256, (20, 16, 5, 4)).astype(np.float32)}
    quantized = quantized_network(graph, data)
    network = partition_network(quantized, SIM)
    operators = [step.workload.operator for step in network.steps]
    assert operators == ["quantize", "gather", "conv2d", "dequantize"]
    assert network.steps[1].workload.fill == -128
    one = {"x": data["x"][:1]}
    wanted = run_integer(quantized, one)["out0"]
    assert len(np.unique(wanted)) > 10
    assert run_network(network, one)["out0"].tobytes() == wanted.tobytes()
    with Simulators(tmp_path) as simulators:
        found = simulators.answer(program_of(network), one)
    assert found["out0"].tobytes() == wanted.tobytes()
