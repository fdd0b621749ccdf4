"""What only the processor has an operator for: tables, moves of single elements, float32."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tilefarm.dtype import DType
from tilefarm.target import Target
from tilefarm.workload import AttrValue

from driver.network.graph.ir import FloatArray
from driver.network.integer.blocks import blocked_places, channel_rows
from driver.network.integer.qir import (
    INT8_MAX,
    INT8_MIN,
    Dequantize,
    Int8Array,
    QGather,
    QProduct,
    QuantGraph,
    Quantize,
    QuantNode,
)
from driver.network.partition.assembly import Assembly, Constant
from driver.network.partition.layers import dequantize_attrs, quantize_attrs
from driver.network.partition.values import Values


class ProcessorCalls:
    """Makes the calls."""

    def __init__(self, graph: QuantGraph, target: Target, made: Assembly, values: Values) -> None:
        self._graph = graph
        self._target = target
        self._made = made
        self._values = values

    def lookup(self, node: QuantNode, table: Int8Array) -> None:
        """A table of the whole int8 range; one with rows for channels is brought into blocks."""
        block = self._target.lanes.block
        if table.ndim > 1:
            table = channel_rows(table, block)
        self._made.call(
            node.name,
            "lookup",
            {"x": self._values.operand(node.inputs[0])},
            {"table": Constant(f"{node.name}.table", table)},
            {},
            result=self._values.result(node.output),
            shape=self._values.image(node.output),
            why="no function of GEMM and ALU; all 256 values are in a table",
        )

    def product(self, node: QuantNode, op: QProduct) -> None:
        """A product of two tensors, element by element."""
        a, b = (self._values.operand(name) for name in node.inputs)
        self._made.call(
            node.name,
            "product",
            {"a": a, "b": b},
            {"table": Constant(f"{node.name}.table", op.table)},
            {"shift": op.shift, "lo": INT8_MIN, "hi": INT8_MAX},
            result=self._values.result(node.output),
            shape=self._values.image(node.output),
            why="multiplies two activations element by element, which GEMM and ALU cannot",
        )

    def gather(self, node: QuantNode, op: QGather) -> None:
        """The same places in blocked data; a row of blocks at a time."""
        source = self._graph.tensors[node.inputs[0]].shape
        before = self._made.blocked(source)
        after = self._made.blocked(self._graph.tensors[node.output].shape)
        lanes = self._target.lanes
        places = blocked_places(op.index, source, lanes.batch, lanes.block)
        self._made.call(
            node.name,
            "gather",
            {"x": (self._values.read(node.inputs[0]), (before[0], math.prod(before[1:])))},
            {"index": Constant(f"{node.name}.index", places)},
            {"fill": op.fill} if op.fill else {},
            result=self._values.result(node.output),
            shape=(after[0], math.prod(after[1:])),
            why="moves elements between lanes and pixels",
        )

    def softmax(self, node: QuantNode, table: FloatArray) -> None:
        """The softmax of each pixel's channels."""
        constants = {"table": Constant(f"{node.name}.table", table)}
        self.step(node, "softmax", "needs float32 division", constants)

    def quantize(self, node: QuantNode, op: Quantize) -> None:
        """float32 of the user to blocked int8."""
        plain = self._values.logical(node.output)
        self._made.call(
            node.name,
            "quantize",
            {"x": (self._values.read(node.inputs[0]), plain)},
            {},
            quantize_attrs(op),
            result=self._values.result(node.output),
            shape=self._made.blocked(plain),
            why="turns float32 into int8",
        )

    def dequantize(self, node: QuantNode, op: Dequantize) -> None:
        """Blocked int8 to float32 of the user."""
        source = self._values.unshaped(node.inputs[0])
        plain = self._values.logical(source)
        self._made.call(
            node.name,
            "dequantize",
            {"x": (self._values.read(source), self._made.blocked(plain))},
            {},
            dequantize_attrs(op),
            result=self._values.result(node.output),
            shape=plain,
            dtype=DType.FLOAT32,
            why="turns int8 into float32",
        )

    def step(
        self,
        node: QuantNode,
        operator: str,
        why: str,
        constants: Mapping[str, Constant],
        **attrs: AttrValue,
    ) -> None:
        """A step on one operand."""
        (source,) = node.inputs
        out = self._graph.tensors[node.output]
        self._made.call(
            node.name,
            operator,
            {"x": self._values.stored(source)},
            constants,
            attrs,
            result=self._values.result(node.output),
            shape=self._made.stored(out),
            dtype=out.dtype,
            why=why,
        )
