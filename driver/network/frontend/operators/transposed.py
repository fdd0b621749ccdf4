"""ConvTranspose as a convolution for each phase of the output's pixels.

Output row s*y + p gets the kernel rows k with (p + pad - k) divisible by s, from input row
y + (p + pad - k) / s: for every phase p a convolution of stride 1 with every s-th kernel row,
backwards. All phases take one window, wide enough for each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from driver.network.frontend.call import Lowered, OnnxCall, RefusedError, Scope
from driver.network.frontend.operators.windows import channel_bias, image, kernels, pair
from driver.network.graph.ir import ConvTranspose2d, FloatArray, Gather, Shape
from driver.network.graph.shapes import result_shape

_LARGEST = 4096


@dataclass(frozen=True, slots=True)
class _Axis:
    """One spatial axis: `taps[p][t]` is the kernel's row for phase p and place t, or -1.

    `extent` is that of the output.
    """

    extent: int
    pad: tuple[int, int]
    taps: tuple[tuple[int, ...], ...]


def conv_transpose(call: OnnxCall, scope: Scope) -> Lowered:
    """ConvTranspose with constant weights.

    What the last stride of an axis makes beyond the extent of the output is cut off.
    """
    name = scope.activation(call)
    shape = image(scope.shapes[name])
    weight, group = kernels(call, scope)
    if weight.shape[0] != shape[1] or shape[1] % group:
        raise RefusedError(f"weight {list(weight.shape)} does not fit input {list(shape)}")
    down, across = _axes(call, shape, weight)
    whole = _ungrouped(weight, group)
    op = ConvTranspose2d(
        weight=_phases(whole, down, across),
        bias=channel_bias(call, scope, whole.shape[1]),
        pad=(down.pad[0], across.pad[0], down.pad[1], across.pad[1]),
    )
    made = result_shape(op, [shape])
    if made[2:] == (down.extent, across.extent):
        return Lowered((op,), (name,))
    places = np.arange(math.prod(made[1:]), dtype=np.int32).reshape(made[1:])
    inside = np.ascontiguousarray(places[:, : down.extent, : across.extent])
    return Lowered((op, Gather(index=inside)), (name,))


def _axes(call: OnnxCall, shape: Shape, weight: FloatArray) -> tuple[_Axis, _Axis]:
    strides = pair(call.integers("strides") or (1, 1), "strides")
    dilations = pair(call.integers("dilations") or (1, 1), "dilations")
    extra = pair(call.integers("output_padding") or (0, 0), "output_padding")
    if not 1 <= min(strides + dilations) <= max(strides + dilations) <= _LARGEST:
        raise RefusedError(f"strides and dilations must be within 1 to {_LARGEST}")
    if not 0 <= min(extra) <= max(extra) <= _LARGEST:
        raise RefusedError(f"output_padding {list(extra)} is not within 0 to {_LARGEST}")
    made = []
    for axis in (0, 1):
        reach = dilations[axis] * (weight.shape[2 + axis] - 1) + 1
        full = strides[axis] * (shape[2 + axis] - 1) + reach + extra[axis]
        before, extent = _cut(call, axis, full, strides[axis] * shape[2 + axis])
        taps = (weight.shape[2 + axis], dilations[axis], strides[axis])
        made.append(_axis(*taps, cut=before, extent=extent, rows=shape[2 + axis]))
    return made[0], made[1]


def _cut(call: OnnxCall, axis: int, full: int, same: int) -> tuple[int, int]:
    """How much of the full output is cut off in front, and the extent that is left."""
    wanted = call.integers("output_shape")
    auto = call.text("auto_pad", "NOTSET")
    if auto not in ("", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise RefusedError(f"auto_pad {auto!r} is unknown")
    if wanted is not None or auto.startswith("SAME"):
        extent = same if wanted is None else pair(wanted[-2:], "output_shape")[axis]
        total = full - extent
        if extent < 1 or extent - full > _LARGEST:
            raise RefusedError(f"output extent {extent} of one that is {full} without padding")
        small = max(0, total) // 2
        return (small if auto == "SAME_UPPER" else max(0, total) - small), extent
    pads = (0, 0, 0, 0) if auto == "VALID" else call.integers("pads") or (0, 0, 0, 0)
    if len(pads) != 4 or not 0 <= min(pads) <= max(pads) <= _LARGEST:
        raise RefusedError(f"pads {list(pads)}; four within 0 to {_LARGEST} are supported")
    return pads[axis], full - pads[axis] - pads[axis + 2]


def _axis(kernel: int, dilation: int, stride: int, *, cut: int, extent: int, rows: int) -> _Axis:
    """The phases of one axis of so many input `rows` and an output of `extent`.

    Raises:
        RefusedError: there is no output.
    """
    if extent < 1:
        raise RefusedError(f"output extent {extent} of {rows} rows")
    offsets = [
        {
            (p + cut - k * dilation) // stride: k
            for k in range(kernel)
            if _meets(p, k, cut, dilation, stride)
        }
        for p in range(stride)
    ]
    used = [offset for phase in offsets for offset in phase]
    places = -(-extent // stride)
    first, last = min([0, *used]), max([0, *used, rows - places])
    taps = tuple(tuple(phase.get(o, -1) for o in range(first, last + 1)) for phase in offsets)
    return _Axis(extent, (-first, places + last - rows), taps)


def _meets(phase: int, row: int, cut: int, dilation: int, stride: int) -> bool:
    """Whether a kernel row reaches the output rows of that phase."""
    return (phase + cut - row * dilation) % stride == 0


def _ungrouped(weight: FloatArray, group: int) -> FloatArray:
    """[Ci, Co/group, Kh, Kw] as [Ci, Co, Kh, Kw], zero between different groups."""
    ci, co = weight.shape[:2]
    whole = np.zeros((group, ci // group, group, co, *weight.shape[2:]), np.float32)
    for g in range(group):
        whole[g, :, g] = weight.reshape(group, ci // group, *weight.shape[1:])[g]
    return whole.reshape(ci, group * co, *weight.shape[2:])


def _phases(weight: FloatArray, down: _Axis, across: _Axis) -> FloatArray:
    """[Co, Sh, Sw, Ci, Kh, Kw] of a weight [Ci, Co, Kh, Kw]; places without a row are zero."""
    ci, co, height, width = weight.shape
    room = np.zeros((ci, co, height + 1, width + 1), np.float32)
    room[:, :, :height, :width] = weight
    rows, columns = np.array(down.taps), np.array(across.taps)
    picked = room[:, :, rows[:, :, None, None], columns[None, None]]
    return np.ascontiguousarray(picked.transpose(1, 2, 4, 0, 3, 5))
