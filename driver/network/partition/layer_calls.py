"""Layers with weights as calls: each one is a kernel of the accelerator, its epilogue included."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray
from tilefarm.target import Target

from driver.network.graph.ir import Shape, Window
from driver.network.integer.qir import (
    QAffine,
    QConv2d,
    QConvTranspose2d,
    QDense,
    QuantGraph,
    QuantNode,
)
from driver.network.partition.assembly import Assembly, Constant
from driver.network.partition.images import Images
from driver.network.partition.layers import (
    SCALES,
    Attrs,
    Planes,
    affine_constants,
    conv_attrs,
    epilogue,
    layer_macs,
)
from driver.network.partition.pack import (
    block_groups,
    in_planes,
    packed_dense_weight,
    packed_grouped_weight,
    packed_transposed_weight,
    packed_window_weight,
)
from driver.network.partition.values import Values

_PIXEL = Window(kernel=(1, 1))


class LayerCalls:
    """Makes the calls."""

    def __init__(
        self, graph: QuantGraph, target: Target, made: Assembly, values: Values, images: Images
    ) -> None:
        self._graph = graph
        self._target = target
        self._made = made
        self._values = values
        self._images = images

    def conv(self, node: QuantNode, op: QConv2d) -> None:
        """A convolution, or its windows if the driver has laid them out already."""
        if self._images.has_windows(node):
            data = self._images.windows_of(node, op)
            weight = in_planes(op.weight, lambda each: packed_window_weight(each, self._target))
            window, groups = _PIXEL, 1
        else:
            data = self._values.operand(node.inputs[0])
            weight = in_planes(
                op.weight, lambda each: packed_grouped_weight(each, op.groups, self._target)
            )
            window, groups = op.window, block_groups(op.weight, op.groups, self._target)
        self._layer(node, op, "conv2d", data, weight, conv_attrs(window, op.lo, op.hi, groups))

    def transposed(self, node: QuantNode, op: QConvTranspose2d) -> None:
        """A transposed convolution."""
        down, across = op.weight.shape[1:3]
        attrs: Attrs = {"stride": (down, across), "pad": op.pad, "lo": op.lo, "hi": op.hi}
        weight = packed_transposed_weight(op.weight, self._target)
        self._layer(
            node, op, "conv2d_transpose", self._values.operand(node.inputs[0]), weight, attrs
        )

    def dense(self, node: QuantNode, op: QDense) -> None:
        """A dense layer; a reshape in front is taken into the order of its weights."""
        name, flattened = self._values.dense_data(node.inputs[0])
        weight = in_planes(
            op.weight, lambda each: packed_dense_weight(each, self._target, flattened)
        )
        tensor = self._graph.tensors[node.inputs[0]]
        *rows, _, batch, block = self._made.stored(replace(tensor, shape=tensor.shape[:2]))
        data = (name, (*rows, weight.shape[-3], batch, block))
        self._layer(node, op, "dense", data, weight, {"lo": op.lo, "hi": op.hi})

    def affine(self, node: QuantNode, op: QAffine) -> None:
        """A scale and an addend for every channel."""
        constants = affine_constants(node.name, op, self._target)
        shape = self._values.image(node.output)
        result, made, around = self._result(node, shape)
        self._made.call(
            node.name,
            "conv2d",
            {"data": (self._values.read(node.inputs[0]), shape)},
            constants,
            {**conv_attrs(_PIXEL, op.lo, op.hi, shape[1]), **around},
            result=result,
            shape=made,
            why=SCALES,
        )

    def _layer(
        self,
        node: QuantNode,
        op: QConv2d | QConvTranspose2d | QDense,
        operator: str,
        data: tuple[str, Shape],
        weight: NDArray[Any],
        attrs: Attrs,
    ) -> None:
        """One call on `data` with the layer's weights and what follows its sums."""
        source, result = (self._graph.tensors[name] for name in (node.inputs[0], node.output))
        planes = Planes(  # one for each byte
            data=source.dtype.nbytes, weight=op.weight.itemsize, out=result.dtype.nbytes
        )
        in_planes = planes.of_sums > 1
        after = epilogue(node.name, op.bias, op.factor, op.shift, self._target, in_planes=in_planes)
        place, shape, around = self._result(node, self._made.stored(result))
        self._made.call(
            node.name,
            operator,
            {"data": data},
            {"weight": Constant(f"{node.name}.weight", weight), **after},
            {**attrs, **planes.attrs, **around},
            result=place,
            shape=shape,
            why=planes.why,
            macs=layer_macs(op, result.shape),
        )

    def _result(self, node: QuantNode, shape: Shape) -> tuple[str, Shape, Attrs]:
        """Where a layer writes, the shape of that, and its attributes for it.

        That is its own tensor, of this shape, or the middle of one whose border is made before.
        """
        border = self._values.borders.get(node.output)
        if border is None:
            return self._values.result(node.output), shape, {}
        attrs: Attrs = {"border": border.pad}
        shape = self._made.stored(self._graph.tensors[border.around])
        place = self._values.result(border.around)
        self._made.call(
            border.around,
            "border",
            {},
            {},
            {**attrs, "fill": border.fill},
            result=place,
            shape=shape,
            why="bytes around what the next layer writes: zeros of asymmetric activations",
        )
        return place, shape, attrs
