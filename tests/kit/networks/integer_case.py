"""One operator of the integer network as a whole graph, and numbers to run it on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType

from driver.network.graph.ir import GraphInput, GraphOutput, Shape
from driver.network.integer.qir import (
    Dequantize,
    QAffine,
    QRescale,
    QuantGraph,
    Quantize,
    QuantNode,
    QuantOperator,
    QuantTensor,
    Real,
)
from driver.network.integer.reference import apply

_EXTREMES: Final = (-128, -127, -64, -2, -1, 0, 1, 2, 64, 126, 127)
_REALS: Final = (0.0, -0.0, 0.5, 1.5, -0.5, -2.5, 1e-38, 1e38, -1e38, 127.5, -128.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One operator on operands of these shapes, float32 for what quantizes.

    Attributes:
        before: what makes the operands of the user's numbers: nothing, a copy, or a clip at 0.
        seed: of the numbers.
    """

    op: QuantOperator
    shapes: tuple[Shape, ...]
    before: str = "nothing"
    seed: int = 0

    def graph(self) -> QuantGraph:
        """The operator between float32 inputs x0, x1, ... and the output y.

        The scales are 1, so that every int8 value can be given.
        """
        made = IntegerGraph()
        operands = [
            self._operand(made, f"x{index}", shape) for index, shape in enumerate(self.shapes)
        ]
        result = made.put("op", self.op, *operands)
        if made.tensors[result].dtype is DType.INT8:
            result = made.put("real", Dequantize(scale=1.0), result)
        return made.graph(result)

    def inputs(self) -> dict[str, NDArray[np.float32]]:
        """The user's numbers: many at the ends and halves that must be rounded to even."""
        rng = np.random.default_rng(self.seed)
        return {f"x{index}": self._numbers(rng, s) for index, s in enumerate(self.shapes)}

    def _numbers(self, rng: np.random.Generator, shape: Shape) -> NDArray[np.float32]:
        if isinstance(self.op, Real):
            return rng.normal(0.1, 2.0, shape).astype(np.float32)
        if isinstance(self.op, Quantize):
            near = (rng.integers(-300, 300, shape) / 2 - self.op.offset) / self.op.inv_scale
            return np.where(rng.random(shape) < 0.3, rng.choice(_REALS, shape), near).astype("f4")
        any_int8 = rng.integers(-128, 128, shape)
        ends = rng.choice(_EXTREMES, shape)
        return np.where(rng.random(shape) < 0.5, ends, any_int8).astype(np.float32)

    def _operand(self, made: IntegerGraph, name: str, shape: Shape) -> str:
        made.give(name, shape)
        if isinstance(self.op, Quantize | Real):
            return name
        result = made.put(f"{name}.int8", Quantize(inv_scale=1.0), name)
        if self.before == "copy":
            return made.put(f"{name}.copy", QRescale(mul=1, shift=0), result)
        if self.before == "clip":
            ones = np.ones(shape[1], np.int32)
            clip = QAffine(weight=ones, bias=0 * ones, shift=0 * ones, lo=0)
            return made.put(f"{name}.clip", clip, result)
        return result


class IntegerGraph:
    """Makes a graph node by node; a node is named as its result."""

    def __init__(self, name: str = "case") -> None:
        self.name = name
        self.inputs: list[GraphInput] = []
        self.nodes: list[QuantNode] = []
        self.tensors: dict[str, QuantTensor] = {}

    def give(self, name: str, shape: Shape) -> None:
        self.inputs.append(GraphInput(name=name, shape=shape, axes=tuple(range(len(shape)))))
        self.tensors[name] = QuantTensor(shape=shape, dtype=DType.FLOAT32)

    def put(self, name: str, op: QuantOperator, *inputs: str) -> str:
        operands = [self.tensors[each] for each in inputs]
        result = apply(op, *(np.zeros(each.shape, each.dtype.value) for each in operands))
        dtype = DType(result.dtype.name)
        scale = 1.0 if dtype is DType.INT8 else None
        self.tensors[name] = QuantTensor(shape=result.shape, dtype=dtype, scale=scale)
        self.nodes.append(QuantNode(name=name, op=op, inputs=inputs, output=name))
        return name

    def graph(self, result: str) -> QuantGraph:
        return QuantGraph(
            name=self.name,
            inputs=tuple(self.inputs),
            outputs=(GraphOutput(name="y", tensor=result),),
            nodes=tuple(self.nodes),
            tensors=self.tensors,
        )
