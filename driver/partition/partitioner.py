"""Integer network to kernel calls on one target: what runs where, on which blocked tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.target import Target
from tilefarm.workload import AttrValue

from driver.graph.ir import Shape, Window
from driver.integer.blocks import blocked_places, channel_rows
from driver.integer.network import Network, NetworkOutput
from driver.integer.qir import (
    INT8_MAX,
    INT8_MIN,
    Dequantize,
    Int8Array,
    QAdd,
    QAffine,
    QAvgPool2d,
    QConcat,
    QConv2d,
    QConvTranspose2d,
    QDense,
    QGather,
    QLookup,
    QMatMul,
    QMaxPool2d,
    QProduct,
    QRescale,
    QReshape,
    QSlice,
    QSoftmax,
    QuantGraph,
    Quantize,
    QuantNode,
    Real,
)
from driver.integer.signs import never_negative
from driver.partition.assembly import Assembly, Constant
from driver.partition.channels import Channels
from driver.partition.images import Images
from driver.partition.layers import (
    MAXIMA,
    MULTIPLIES,
    SCALES,
    Attrs,
    affine_constants,
    conv_attrs,
    diagonal,
    epilogue,
    layer_macs,
    pool_attrs,
)
from driver.partition.matmuls import MatMuls
from driver.partition.misfits import misfit
from driver.partition.pack import (
    packed_dense_weight,
    packed_grouped_weight,
    packed_transposed_weight,
    packed_window_weight,
)
from driver.partition.real_steps import add_real_steps
from driver.partition.values import Values

_PIXEL = Window(kernel=(1, 1))


def partition(graph: QuantGraph, target: Target) -> Network:
    """The network as kernel calls in the graph's order.

    Everything between the float32 tensors of the user runs on the accelerator, except what it has
    no form for or no room. Reshapes, concatenations and slices that leave the blocked bytes in
    place make no step; a reshape in front of a dense layer is taken into the order of its weights.
    """
    partitioner = _Partitioner(graph, target)
    for node in graph.nodes:
        partitioner.take(node)
    return partitioner.finish()


class _Partitioner:
    """Walks the integer network in order; knows which tensor holds each value."""

    def __init__(self, graph: QuantGraph, target: Target) -> None:
        self._graph = graph
        self._target = target
        self._made = Assembly(graph, target)
        self._values = Values(graph, target, self._made)
        self._positive = never_negative(graph)
        self._matmuls = MatMuls(graph, target, self._made, self._values)
        self._channels = Channels(graph, target, self._made, self._values)
        self._images = Images(graph, target, self._made, self._values)

    def take(self, node: QuantNode) -> None:
        """Adds the steps of one node, if it needs any."""
        match node.op:
            case QReshape():
                self._values.reshape(node)
            case QSlice():
                self._channels.cut(node, node.op)
            case QConcat():
                self._channels.join(node)
            case QConv2d():
                self._conv(node, node.op)
            case QConvTranspose2d():
                self._transposed(node, node.op)
            case QDense():
                self._dense(node, node.op)
            case QMatMul():
                self._matmuls.call(node, node.op)
            case QAffine():
                self._affine(node, node.op)
            case QAdd():
                self._add(node, node.op)
            case QRescale(mul=mul, shift=shift):
                source, result = self._values.read(node.inputs[0]), self._values.result(node.output)
                self._channels.scale(
                    node.name, source, node.output, mul=mul, shift=shift, result=result
                )
            case QMaxPool2d(window=window):
                self._max_pool(node, window)
            case QAvgPool2d():
                self._avg_pool(node, node.op)
            case QLookup(table=table):
                self._lookup(node, table)
            case QProduct():
                self._product(node, node.op)
            case QGather() if self._matmuls.takes(node):
                pass
            case QGather():
                self._gather(node, node.op)
            case QSoftmax(table=table):
                constants = {"table": Constant(f"{node.name}.table", table)}
                self._cpu(node, "softmax", "needs float32 division", constants)
            case Quantize(inv_scale=inv_scale):
                self._quantize(node, inv_scale)
            case Real():
                add_real_steps(node, node.op, self._graph, self._made, self._values)
            case Dequantize(scale=scale):
                source = self._values.unshaped(node.inputs[0])
                plain = self._values.logical(source)
                self._made.call(
                    node.name,
                    "dequantize",
                    {"x": (self._values.read(source), self._made.blocked(plain))},
                    {},
                    {"scale": scale},
                    result=self._values.result(node.output),
                    shape=plain,
                    dtype=DType.FLOAT32,
                    why="turns int8 into float32",
                )

    def finish(self) -> Network:
        """The network of everything taken so far."""
        return self._made.network(
            tuple(
                NetworkOutput(
                    name=output.name,
                    tensor=self._values.as_output(output.tensor),
                    shape=self._graph.tensors[output.tensor].shape,
                    grid=output.grid,
                )
                for output in self._graph.outputs
            )
        )

    def _conv(self, node: QuantNode, op: QConv2d) -> None:
        if self._images.has_windows(node):
            data = self._images.windows_of(node, op)
            weight, groups = packed_window_weight(op.weight, self._target), 1
            window = _PIXEL
        else:
            data = self._values.operand(node.inputs[0])
            weight, groups = packed_grouped_weight(op.weight, op.groups, self._target)
            window = op.window
        self._layer(node, op, "conv2d", data, weight, conv_attrs(window, op.lo, op.hi, groups))

    def _transposed(self, node: QuantNode, op: QConvTranspose2d) -> None:
        down, across = op.weight.shape[1:3]
        attrs: Attrs = {"stride": (down, across), "pad": op.pad, "lo": op.lo, "hi": op.hi}
        weight = packed_transposed_weight(op.weight, self._target)
        self._layer(
            node, op, "conv2d_transpose", self._values.operand(node.inputs[0]), weight, attrs
        )

    def _dense(self, node: QuantNode, op: QDense) -> None:
        name, flattened = self._values.dense_data(node.inputs[0])
        weight = packed_dense_weight(op.weight, self._target, flattened)
        rows, _, *tile = self._made.blocked(self._graph.tensors[node.output].shape)
        data = (name, (rows, weight.shape[1], *tile))
        self._layer(node, op, "dense", data, weight, {"lo": op.lo, "hi": op.hi})

    def _layer(
        self,
        node: QuantNode,
        op: QConv2d | QConvTranspose2d | QDense,
        operator: str,
        data: tuple[str, Shape],
        weight: NDArray[Any],
        attrs: Attrs,
    ) -> None:
        """One call on int8 `data` with the layer's weights and what follows its sums."""
        result = self._graph.tensors[node.output].shape
        after = epilogue(node.name, op.bias, op.factor, op.shift, self._target)
        self._made.call(
            node.name,
            operator,
            {"data": data},
            {"weight": Constant(f"{node.name}.weight", weight), **after},
            attrs,
            result=self._values.result(node.output),
            shape=self._made.blocked(result),
            why=MULTIPLIES,
            macs=layer_macs(op, result),
        )

    def _affine(self, node: QuantNode, op: QAffine) -> None:
        constants = affine_constants(node.name, op, self._target)
        shape = self._values.image(node.output)
        self._made.call(
            node.name,
            "conv2d",
            {"data": (self._values.read(node.inputs[0]), shape)},
            constants,
            conv_attrs(_PIXEL, op.lo, op.hi, shape[1]),
            result=self._values.result(node.output),
            shape=shape,
            why=SCALES,
        )

    def _add(self, node: QuantNode, op: QAdd) -> None:
        operands = {
            name: self._values.operand(tensor)
            for name, tensor in zip("ab", node.inputs, strict=True)
        }
        scales = {
            "scale_a": diagonal(op.mul_a, self._target),
            "scale_b": diagonal(op.mul_b, self._target),
        }
        attrs: Attrs = {"shift": op.shift, "lo": op.lo, "hi": op.hi}
        why = self._accelerated(node, "scaled_add", operands, scales, attrs, SCALES)
        if why:
            self._made.call(
                node.name,
                "add",
                operands,
                {},
                {"mul_a": op.mul_a, "mul_b": op.mul_b, **attrs},
                result=self._values.result(node.output),
                shape=self._values.image(node.output),
                why=why,
            )

    def _lookup(self, node: QuantNode, table: Int8Array) -> None:
        """A table of the whole int8 range; one with rows for channels is brought into blocks."""
        block = self._target.vta.block
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

    def _product(self, node: QuantNode, op: QProduct) -> None:
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

    def _gather(self, node: QuantNode, op: QGather) -> None:
        """The same places in blocked data; a row of blocks at a time."""
        source = self._graph.tensors[node.inputs[0]].shape
        before = self._made.blocked(source)
        after = self._made.blocked(self._graph.tensors[node.output].shape)
        places = blocked_places(op.index, source, self._target.vta.batch, self._target.vta.block)
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

    def _max_pool(self, node: QuantNode, window: Window) -> None:
        attrs = pool_attrs(window)
        why = "its input may be negative, and padding counts as 0 on the accelerator"
        if node.inputs[0] in self._positive:
            data = {"x": self._values.operand(node.inputs[0])}
            identity = {"identity": diagonal(1, self._target)}
            why = self._accelerated(node, "window_max2d", data, identity, attrs, MAXIMA)
        if why:
            self._cpu(node, "max_pool2d", why, {}, **attrs)

    def _avg_pool(self, node: QuantNode, op: QAvgPool2d) -> None:
        attrs: Attrs = {**pool_attrs(op.window), "shift": op.shift, "lo": op.lo, "hi": op.hi}
        why = "windows at the border count fewer elements and have multipliers of their own"
        if (op.mul == op.mul.flat[0]).all():
            data = {"x": self._values.operand(node.inputs[0])}
            scale = {"scale": diagonal(int(op.mul.flat[0]), self._target)}
            why = self._accelerated(node, "window_sum2d", data, scale, attrs, SCALES)
        if why:
            constants = {"mul": Constant(f"{node.name}.mul", op.mul)}
            self._cpu(node, "avg_pool2d", why, constants, **attrs)

    def _accelerated(
        self,
        node: QuantNode,
        operator: str,
        data: Mapping[str, tuple[str, Shape]],
        tiles: Mapping[str, Constant],
        attrs: Attrs,
        why: str,
    ) -> str:
        """Adds a step on the accelerator, or says why it cannot be there.

        For what the processor has an operator of its own for, which needs no tiles.
        """
        shape = self._values.image(node.output)
        reason = misfit(self._made.workload(operator, data, tiles, attrs, shape), self._target)
        if not reason:
            result = self._values.result(node.output)
            self._made.call(
                node.name, operator, data, tiles, attrs, result=result, shape=shape, why=why
            )
        return reason

    def _quantize(self, node: QuantNode, inv_scale: float) -> None:
        if not self._images.is_all_windows(node):
            plain = self._values.logical(node.output)
            self._made.call(
                node.name,
                "quantize",
                {"x": (self._values.read(node.inputs[0]), plain)},
                {},
                {"inv_scale": inv_scale},
                result=self._values.result(node.output),
                shape=self._made.blocked(plain),
                why="turns float32 into int8",
            )

    def _cpu(
        self,
        node: QuantNode,
        operator: str,
        why: str,
        constants: Mapping[str, Constant],
        **attrs: AttrValue,
    ) -> None:
        """A step next to the accelerator, on one operand."""
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
