"""Layers in ONNX's own arithmetic as calls of a processor's kernels."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.target import Target
from tilefarm.workload import AttrValue

from compile_worker.isa import isa_of
from compile_worker.te.operators.qlinear import PAIR, QUAD
from driver.network.graph.ir import Shape, Window
from driver.network.integer.blocks import blocked_shape
from driver.network.integer.qir import Int16Array, Int32Array, QuantGraph, QuantNode
from driver.network.integer.qlinear import (
    DynamicLayer,
    QLinearConv2d,
    QLinearConvTranspose2d,
    QLinearDense,
    QLinearFused,
)
from driver.network.integer.qlinear import QLinearLayer as Layer
from driver.network.partition.assembly import Assembly, Constant
from driver.network.partition.dynamic_calls import dynamic_operands
from driver.network.partition.layout_choice import ROW_MAJOR
from driver.network.partition.pixel_rows import PixelRows, in_rows, is_column, turned_pad
from driver.network.partition.qlinear_layers import LANES, PIXEL, QLinearLayer
from driver.network.partition.qlinear_requantization import fused_attrs, requantization_attrs
from driver.network.partition.qlinear_values import QLinearValues
from driver.network.partition.qlinear_weights import (
    centered_bias,
    centered_weights,
    grouped_weights,
    in_blocks,
    joined_planes,
    leaves_int8,
    weight_planes,
    zero_within_int8,
)

WHY: Final = "as the quantized model defines it"
_FEW: Final = 4
"""Channels of an image that is flattened in an order of its own."""


class LayerCalls:
    """Makes the calls."""

    def __init__(
        self, graph: QuantGraph, target: Target, made: Assembly, values: QLinearValues
    ) -> None:
        self._graph = graph
        self._isa = isa_of(target.host)
        self._made = made
        self._values = values

    def conv(self, node: QuantNode, op: QLinearConv2d) -> None:
        """A convolution: of each channel by itself, or of blocks of them, in groups or not."""
        n, inputs, height, width = self._values.shape(node.inputs[0])
        rows = in_rows((n, inputs, height, width), op.window)
        weight = rows.taps(centered_weights(op))
        bias, macs = centered_bias(op, weight), math.prod(weight.shape[1:])
        if op.groups == inputs == len(weight) and op.groups > 1:
            self._depthwise(node, op, rows, weight)
            return
        weight, groups = grouped_weights(weight, op.groups)
        zero = self._zero(weight, rows.data, rows.window)
        planes = self._planes(weight, zero)
        layer = self._layer(node, op, rows.data, rows.window, planes, zero)
        if len(planes) == 1 and (groups == 1 or self._isa.matrix):
            layer = layer.packed_by(self._isa.depth)
        if len(planes) == 1:
            source, _ = self._values.read(node.inputs[0], inputs if layer.along_rows else LANES)
        else:
            source, seen = self._values.read(node.inputs[0], LANES)
            source, layer = self._repeated(node, layer, (source, seen), len(planes), groups)
        packed = layer.packed(joined_planes(planes, groups))
        self._call(node, op, layer, source, packed, bias, groups=groups, macs=macs)

    def _depthwise(
        self,
        node: QuantNode,
        op: QLinearConv2d,
        rows: PixelRows,
        weight: Int16Array,
    ) -> None:
        """A convolution of each channel by itself, whose weights may be planes of int8."""
        planes = weight_planes(weight) if self._isa.together == QUAD else [weight]
        layer = self._layer(node, op, rows.data, rows.window, planes, 0)
        layer = replace(layer, depthwise=True, planes=len(planes))
        packed = [layer.packed(plane) for plane in planes]
        whole = np.stack(packed, axis=-3) if len(planes) > 1 else packed[0]
        source, _ = self._values.read(node.inputs[0], LANES)
        taps, bias = math.prod(weight.shape[1:]), centered_bias(op, weight)
        self._call(node, op, layer, source, whole, bias, groups=1, macs=taps)

    def dense(self, node: QuantNode, op: QLinearDense) -> None:
        """A convolution of one pixel, or of the image that was flattened, as its only window."""
        weight = centered_weights(op)
        n, inputs = self._values.shape(node.inputs[0])
        data, window = (n, inputs, 1, 1), PIXEL
        before = self._values.unflattened(node.inputs[0])
        taps = weight.reshape(*weight.shape, 1, 1)
        if len(before.shape) == 4 and before.block == LANES and before.shape[1] > _FEW:
            samples, channels, height, width = before.shape
            if samples == n and channels * height * width == inputs:
                data = (n, channels, height, width)
                window = replace(PIXEL, kernel=(height, width))
                taps = weight.reshape(len(weight), channels, height, width)
        zero = self._zero(taps, data, window)
        planes = self._planes(taps, zero)
        layer = self._layer(node, op, data, window, planes, zero)
        if window is not PIXEL:
            source, seen = before.tensor, before.stored
        else:
            is_along_rows = layer.along_rows and len(planes) == 1
            source, seen = self._values.read(node.inputs[0], inputs if is_along_rows else LANES)
        if len(planes) > 1:
            source, layer = self._repeated(node, layer, (source, seen), len(planes), 1)
        bias = centered_bias(op, weight)
        packed = layer.packed(joined_planes(planes, 1))
        self._call(node, op, layer, source, packed, bias, groups=1, macs=inputs)

    def transposed(self, node: QuantNode, op: QLinearConvTranspose2d) -> None:
        """A convolution for each phase of the output's pixels."""
        n, inputs, *image = self._values.shape(node.inputs[0])
        _, co, *result = self._values.shape(node.output)
        (plane,) = weight_planes(centered_weights(op))  # see `with_spread_data`
        bias, pad = centered_bias(op, plane)[:, 0, 0], op.pad
        if is_column(image, result):
            image, result, pad = image[::-1], result[::-1], turned_pad(pad)
            plane = plane.transpose(0, 2, 1, 3, 5, 4)
        _, down, across, *_ = plane.shape
        packed = QLinearLayer(
            data=(n, inputs, *PIXEL.kernel), outputs=co, window=PIXEL, together=self._isa.depth
        ).packed_phases(plane)
        attrs: dict[str, AttrValue] = {
            "stride": (down, across),
            "pad": pad,
            "fill": op.x_zero,
            **requantization_attrs(op.to),
        }
        taps = int(np.count_nonzero(plane.any(axis=(0, 3))))
        macs = n * co * math.prod(result) // (down * across) * inputs * taps
        constants = {
            "weight": Constant(f"{node.name}.weight", packed),
            **self._lanes(node, op, bias, co),
        }
        source, _ = self._values.read(node.inputs[0], LANES)
        data = {"data": (source, blocked_shape((n, inputs, *image), 1, LANES))}
        shape = blocked_shape((n, co, *result), 1, LANES)
        self._emit(node, "qlinear_conv2d_transpose", data, constants, attrs, macs=macs, shape=shape)

    def _zero(self, weight: Int16Array, data: tuple[int, int, int, int], window: Window) -> int:
        """What brings weights back to int8, where the kernel knows that and quads are faster."""
        sizes = QLinearLayer(data=data, outputs=len(weight), window=window)
        is_known = self._isa.together == QUAD and sizes.admits_zero
        return zero_within_int8(weight) if is_known else 0

    def _planes(self, weight: Int16Array, zero: int) -> list[Int16Array]:
        """The weights as they are if the target's instruction takes them; otherwise of int8."""
        return [weight] if zero or self._isa.pair else weight_planes(weight)

    def _layer(
        self,
        node: QuantNode,
        op: Layer,
        data: tuple[int, int, int, int],
        window: Window,
        planes: list[Int16Array],
        zero: int,
    ) -> QLinearLayer:
        """The layer on an image of that shape, packed for the target's instruction."""
        wide = not zero and any(map(leaves_int8, planes))
        return QLinearLayer(
            data=data,
            outputs=len(op.weight),
            window=window,
            dtype=self._values.dtype(node.inputs[0]),
            fill=op.x_zero,
            zero=op.to.zero,
            clip=(op.to.lo, op.to.hi),
            together=PAIR if wide else self._isa.together,
            wide=wide,
            weight_zero=zero,
        )

    def _repeated(
        self,
        node: QuantNode,
        layer: QLinearLayer,
        data: tuple[str, Shape],
        planes: int,
        groups: int,
    ) -> tuple[str, QLinearLayer]:
        """The data as many times as there are planes, group by group; and the layer that reads it.

        [g0 g1]  ->  [g0 g0 g1 g1]
        """
        source, (n, blocks, *rest) = data
        shape = (n, planes * blocks, *rest)
        result = self._made.fresh(f"{node.name}.data")
        part = (n * groups, math.prod((blocks, *rest)) // groups)
        joined = (n * groups, planes * part[1])
        self._made.call(
            f"{node.name}.data",
            "concat",
            {f"x{plane}": (source, part) for plane in range(planes)},
            {},
            {},
            result=result,
            shape=joined,
            dtype=layer.dtype,
            why="weights with zero points are planes of int8, and each reads the data",
        )
        _, _, height, width = layer.data
        return result, replace(layer, data=(n, shape[1] * LANES, height, width))

    def _call(
        self,
        node: QuantNode,
        op: Layer,
        layer: QLinearLayer,
        source: str,
        packed: NDArray[Any],
        bias: Int32Array,
        *,
        groups: int,
        macs: int,
    ) -> None:
        kernel = layer.workload()
        attrs = {
            name: value
            for name, value in kernel.attrs
            if op.to.dtype is not DType.FLOAT32 or name not in ("zero", "lo", "hi")
        }
        if groups > 1:
            attrs["groups"] = groups
        constants = {
            "weight": Constant(f"{node.name}.weight", packed),
            **self._lanes(node, op, bias, len(op.weight)),
        }
        if layer.weight_zero:
            zeros = np.full((LANES, layer.together), layer.weight_zero, np.int8)
            constants["weight_zero"] = Constant(f"{node.name}.weight_zero", zeros)
        data = {"data": (source, kernel.inputs[0].shape)}
        macs *= math.prod(self._values.shape(node.output))
        shape = kernel.outputs[0].shape
        self._emit(node, kernel.operator, data, constants, attrs, macs=macs, shape=shape)

    def _lanes(
        self,
        node: QuantNode,
        op: Layer,
        bias: Int32Array,
        channels: int,
    ) -> dict[str, Constant]:
        """What every channel has of its own."""
        lanes = {"bias": bias, "scale": op.to.scale, "addend": op.to.addend}
        return {
            name: Constant(f"{node.name}.{name}", in_blocks(values, channels))
            for name, values in lanes.items()
            if values is not None
        }

    def _emit(
        self,
        node: QuantNode,
        operator: str,
        data: dict[str, tuple[str, Shape]],
        constants: dict[str, Constant],
        attrs: dict[str, AttrValue],
        *,
        macs: int,
        shape: Shape,
    ) -> None:
        behind: dict[str, tuple[str, Shape]] = {}
        if isinstance(node.op, QLinearFused):
            behind["other"] = self._values.read(node.inputs[1], LANES)[0], shape
            attrs = {**attrs, **fused_attrs(node.op.binary)}
        result, _ = self._values.result(node.output, LANES)
        if isinstance(node.op, DynamicLayer):
            assert shape[0] == 1, "there are no several samples where each has a range of its own"
            grid, _ = self._values.read(node.inputs[1], ROW_MAJOR)
            data |= dynamic_operands(self._made, node.name, node.op.layer, grid, constants)
            constants = {}
        self._made.call(
            node.name,
            operator,
            data,
            constants,
            attrs,
            result=result,
            shape=shape,
            dtype=self._values.dtype(node.output),
            why=WHY,
            macs=macs,
            behind=behind,
        )
