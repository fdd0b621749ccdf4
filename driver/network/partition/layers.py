"""Layers as calls of the accelerator: operands packed, bias in tiles, shifts for blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from tilefarm.errors import ModelError
from tilefarm.target import Target
from tilefarm.workload import AttrValue

from driver.network.graph.ir import Shape, Window
from driver.network.integer.qir import (
    Dequantize,
    Int8Array,
    Int32Array,
    QAffine,
    QConv2d,
    QConvTranspose2d,
    QDense,
    Quantize,
)
from driver.network.partition.assembly import Constant
from driver.network.partition.pack import (
    bias_planes,
    bias_tiles,
    diagonal_lanes,
    diagonal_tile,
    packed_conv_weight,
    packed_lanes,
    packed_shift,
    unit_rows,
)

MULTIPLIES = "multiply-accumulates with a shift behind them: what GEMM and ALU do"
_JOINS = "of 16 bits: GEMM with high and low bytes, ALU joins the sums"
MAXIMA = "the largest of never negative values: GEMM widens them, ALU compares"
MOVES = "channels sorted by weights of 0 and 1: GEMM moves int8 exactly"
SCALES = "products with a diagonal tile, in the accumulators: what GEMM and ALU do"

Constants = dict[str, Constant]
Attrs = dict[str, AttrValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planes:
    """How many int8 tensors, high and low, hold what a layer reads and what it makes: 1 or 2."""

    data: int = 1
    weight: int = 1
    out: int = 1

    @property
    def of_sums(self) -> int:
        """How many sums are joined; biases have two planes where it is more than one."""
        return self.data + self.weight - 1

    @property
    def attrs(self) -> Attrs:
        """The attributes of the layer's workload: what is one is not written."""
        each = {"data_planes": self.data, "planes": self.weight, "out_planes": self.out}
        return {name: count for name, count in each.items() if count > 1}

    @property
    def why(self) -> str:
        """The reason for the place of the layer."""
        wide = ["data"] * (self.data > 1) + ["weights"] * (self.weight > 1)
        why = f"{' and '.join(wide)} {_JOINS}" if wide else MULTIPLIES
        return f"{why}; makes 16 bits" if self.out > 1 else why


def epilogue(
    name: str,
    bias: Int32Array,
    factor: Int32Array | None,
    shift: Int32Array,
    target: Target,
    *,
    in_planes: bool = False,
) -> Constants:
    """What follows the sums of a layer; no bias where all of them are zero.

    Biases are `in_planes` where sums of several planes are joined.

    Raises:
        ModelError: a shift is more than the target has; the network was made for another one.
    """
    widest, most = int(shift.max(initial=0)), target.limits.max_shift
    if widest > most:
        raise ModelError(
            f"{name}: shifts by {widest} bits, and the ALU of {target.name} has {most}",
            f"quantize the network for {target.name}",
        )
    constants = {}
    if bias.any():
        tiles = bias_planes(bias, target) if in_planes else bias_tiles(bias, target)
        constants["bias"] = Constant(f"{name}.bias", tiles)
        constants["unit"] = Constant("unit", unit_rows(target))
    if factor is not None:
        constants["factor"] = Constant(f"{name}.factor", packed_lanes(factor, target))
    constants["shift"] = Constant(f"{name}.shift", packed_shift(shift, target))
    return constants


def affine_constants(name: str, op: QAffine, target: Target) -> Constants:
    """A scale for every channel as a convolution of one pixel, whose weights are diagonal tiles."""
    weight = diagonal_lanes(op.weight, target)
    after = epilogue(name, op.bias, op.factor, op.shift, target)
    return {"weight": Constant(f"{name}.weight", weight), **after}


def sorting_weight(sources: list[int], lanes: int, target: Target) -> Int8Array:
    """[Co/c, Ci/c, 1, 1, c, c] with which output channel k is input channel `sources[k]`."""
    weight = np.zeros((len(sources), lanes, 1, 1), np.int8)
    weight[np.arange(len(sources)), sources] = 1
    return np.asarray(packed_conv_weight(weight, target), np.int8)


def diagonal(value: int, target: Target) -> Constant:
    """A tile that multiplies every lane by the value."""
    return Constant(f"times_{value}", diagonal_tile(value, target))


def conv_attrs(window: Window, lo: int = -128, hi: int = 127, groups: int = 1) -> Attrs:
    """Attributes of a convolution; one group is not written."""
    attrs: Attrs = {
        "stride": window.stride,
        "pad": window.pad,
        "dilation": window.dilation,
        "lo": lo,
        "hi": hi,
    }
    return {**attrs, "groups": groups} if groups > 1 else attrs


def quantize_attrs(op: Quantize) -> Attrs:
    """Attributes of a step from float32 to int8; an offset of zero is not written."""
    return _with_offset({"inv_scale": op.inv_scale}, op.offset)


def dequantize_attrs(op: Dequantize) -> Attrs:
    """Attributes of a step from int8 to float32; an offset of zero is not written."""
    return _with_offset({"scale": op.scale}, op.offset)


def _with_offset(attrs: Attrs, offset: float) -> Attrs:
    return {**attrs, "offset": offset} if offset else attrs


def pool_attrs(window: Window) -> Attrs:
    """Attributes of a pooling window."""
    return {"kernel": window.kernel, "stride": window.stride, "pad": window.pad}


def layer_macs(op: QConv2d | QConvTranspose2d | QDense, result: Shape) -> int:
    """Useful multiply-accumulates of a layer, on the network's own channels."""
    if isinstance(op, QConvTranspose2d):
        taps = int(np.count_nonzero(op.weight.any(axis=(0, 3))))
        _, down, across, ci, *_ = op.weight.shape
        return int(math.prod(result) // (down * across) * ci * taps)
    return math.prod(result) * math.prod(op.weight.shape[1:])
