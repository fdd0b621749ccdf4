"""QLinear convolutions as the processor's kernels want them: their workloads, their weights packed.

A layer has one of four forms: blocks of channels; the same by minimal filtering; an image of few
channels, side by side in its rows; every channel by itself. Whatever fills up blocks, quads and
pairs is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType
from tilefarm.workload import AttrValue, TensorSpec, Workload

from compile_worker.passes.flatten import LOCAL_NBYTES
from compile_worker.te.operators.qlinear import PAIR, QUAD
from compile_worker.te.operators.winograd import MOST_TERMS, POINTS, TILE
from driver.network.graph.ir import Window
from driver.network.integer.blocks import to_blocks
from driver.network.integer.winograd import COLUMNS, points_of

LANES: Final = 16
"""Channels of a block: int32 sums of a cache line."""

_FEW: Final = 4
"""Channels of an image that is read along its rows, at most."""

_MOST_POINTS_NBYTES: Final = 4 << 20
"""Of the weights of minimal filtering, four times those of the convolution: what a core has for
itself of the last cache, as a rule. A layer with more of them (512 channels of 7 x 7 pixels) took
3.1 ms against 2.2 ms on a Zen 3 with 32 MiB for all of its tenants."""

PIXEL: Final = Window(kernel=(1, 1))
"""The window of a layer without an image."""

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QLinearLayer:
    """A convolution of 8 bits: its sizes, and the integers that its results are clipped to.

    Attributes:
        data: [N, Ci, H, W].
        outputs: how many channels it makes.
        depthwise: each of them from one channel of the data, which has as many.
        fill: what is around the image, the data's zero point.
        zero: of the results, which are within `clip`.
        together: products that the processor's instruction adds to a sum, 8, 4 or 2, as its `Isa`
            has them; weights are packed for it.
        wide: weights may leave int8, and are pairs of int16.
        planes: of int8, that add up to the weights of a depthwise layer.
        weight_zero: what is added to weights that may leave int8 so that they do not.
        winograd: by minimal filtering, of pairs; where `admits_winograd`.
    """

    data: tuple[int, int, int, int]
    outputs: int
    window: Window
    depthwise: bool = False
    dtype: DType = DType.UINT8
    fill: int = 0
    zero: int = 0
    clip: tuple[int, int] = (0, 255)
    together: int = QUAD
    wide: bool = False
    planes: int = 1
    weight_zero: int = 0
    winograd: bool = False

    def packed_phases(self, weight: NDArray[np.integer[Any]]) -> NDArray[np.int8]:
        """Weights [Co, Sh, Sw, Ci, Kh, Kw] of a transposed layer as its kernel reads them."""
        together = max(self.together, QUAD)
        _, down, across, *_ = weight.shape
        phases = [
            [_packed_blocks(weight[:, p, q], together) for q in range(across)] for p in range(down)
        ]
        return np.ascontiguousarray(np.moveaxis(np.array(phases, np.int8), 2, 0))

    @property
    def along_rows(self) -> bool:
        """Whether it reads an image whose channels are side by side in its rows."""
        return not self.depthwise and is_along_rows(self.data[1], self.window)

    @property
    def products(self) -> int:
        """Multiplications, of which none is for what fills up."""
        height, width = self.window.positions(*self.data[2:])
        inputs = 1 if self.depthwise else self.data[1]
        kernel = self.window.kernel[0] * self.window.kernel[1]
        return self.data[0] * self.outputs * height * width * inputs * kernel

    @property
    def admits_winograd(self) -> bool:
        """Whether minimal filtering computes it: its windows have three columns side by side.

        Sums have 28 bits there, and what is multiplied lies on the stack.
        """
        window, blocks = self.window, -(-self.data[1] // LANES)
        rows = (window.kernel[0] - 1) * window.dilation[0] + 1
        tiles = -(-window.positions(*self.data[2:])[1] // TILE)
        return (
            not (self.depthwise or self.along_rows)
            and window.kernel[1] == COLUMNS
            and window.stride[1] == window.dilation[1] == 1
            and blocks * LANES * window.kernel[0] * COLUMNS <= MOST_TERMS
            and self.data[0] * blocks * LANES * rows * tiles * POINTS * 2 <= LOCAL_NBYTES
        )

    @property
    def admits_zero(self) -> bool:
        """Whether its kernel knows a zero point of weights: not along rows, and with stack."""
        top, left, bottom, right = self.window.pad
        rows = (self.window.kernel[0] - 1) * self.window.dilation[0] + 1
        columns = left + self.data[3] + right
        blocks = -(-self.data[1] // LANES)
        nbytes = self.data[0] * blocks * LANES * rows * columns
        is_padded = any((top, left, bottom, right))
        return not self.along_rows and (nbytes <= LOCAL_NBYTES or not is_padded)

    def packed_by(self, depth: int) -> QLinearLayer:
        """The layer as instructions that add so many products to a sum do it fastest.

        Channels by themselves have no products of matrices.
        """
        together = min(depth, QUAD) if self.depthwise else depth
        points = _blocks(self) * LANES * self.data[1] * self.window.kernel[0] * POINTS
        is_faster = self.admits_winograd and 2 * points <= _MOST_POINTS_NBYTES
        by_winograd = together == PAIR and is_faster and not self.wide
        return replace(self, together=PAIR if self.wide else together, winograd=by_winograd)

    def workload(self) -> Workload:
        """The kernel that computes it."""
        return _FORMS[self._form](self)

    @property
    def weight_dtype(self) -> DType:
        """What weights are packed as. A channel has few by itself, and they are not widened."""
        in_pairs = self.depthwise and self.together == PAIR
        return DType.INT16 if self.wide or self.winograd or in_pairs else DType.INT8

    def packed(self, weight: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Weights [Co, Ci or 1, Kh, Kw] as the kernel reads them."""
        packed = _PACKERS[self._form](weight.astype(np.int16), self.together)
        return (packed + np.int16(self.weight_zero)).astype(self.weight_dtype.value)

    @property
    def _form(self) -> str:
        if self.depthwise:
            return "depthwise"
        return "winograd" if self.winograd else "rows" if self.along_rows else "blocks"


def is_along_rows(inputs: int, window: Window) -> bool:
    """Whether a convolution of so many channels reads them side by side in rows of an image."""
    return inputs <= _FEW and window.dilation[1] == 1


def _of_blocks(layer: QLinearLayer) -> Workload:
    n, inputs, height, width = layer.data
    blocks = -(-inputs // LANES)
    return _workload(
        layer,
        "qlinear_conv2d",
        (n, blocks, height, width, 1, LANES),
        (
            _blocks(layer),
            blocks,
            *layer.window.kernel,
            _groups(inputs, layer.together),
            LANES,
            layer.together,
        ),
        {"pad": layer.window.pad, "stride": layer.window.stride},
    )


def _of_points(layer: QLinearLayer) -> Workload:
    n, inputs, height, width = layer.data
    blocks = -(-inputs // LANES)
    return _workload(
        layer,
        "qlinear_winograd2d",
        (n, blocks, height, width, 1, LANES),
        (_blocks(layer), POINTS, blocks, layer.window.kernel[0], LANES // PAIR, LANES, PAIR),
        {"pad": layer.window.pad, "stride": layer.window.stride},
    )


def _of_rows(layer: QLinearLayer) -> Workload:
    n, inputs, height, width = layer.data
    (down, across), (top, left, bottom, _) = layer.window.stride, layer.window.pad
    groups = -(-layer.window.kernel[1] * inputs // layer.together)
    row = width * inputs
    _, columns = layer.window.positions(height, width)
    right = max(0, (columns - 1) * across * inputs + groups * layer.together - row - left * inputs)
    return _workload(
        layer,
        "qlinear_conv2d",
        (n, 1, height, row, 1, 1),
        (_blocks(layer), 1, layer.window.kernel[0], groups, 1, LANES, layer.together),
        {"pad": (top, left * inputs, bottom, right), "stride": (down, across * inputs)},
    )


def _of_channels(layer: QLinearLayer) -> Workload:
    n, _, height, width = layer.data
    (_, across), (top, left, bottom, _) = layer.window.stride, layer.window.pad
    parts = -(-layer.window.kernel[1] // layer.together)
    _, columns = layer.window.positions(height, width)
    reach = (parts * layer.together - 1) * layer.window.dilation[1] + 1
    right = max(0, (columns - 1) * across + reach - width - left)
    return _workload(
        layer,
        "qlinear_depthwise2d",
        (n, _blocks(layer), height, width, 1, LANES),
        (
            *(_blocks(layer), layer.window.kernel[0], parts),
            *((layer.planes,) if layer.planes > 1 else ()),
            *(LANES, layer.together),
        ),
        {"pad": (top, left, bottom, right), "stride": layer.window.stride},
    )


def _blocks(layer: QLinearLayer) -> int:
    return -(-layer.outputs // LANES)


def _workload(
    layer: QLinearLayer, operator: str, data: Shape, weight: Shape, window: Mapping[str, Shape]
) -> Workload:
    channels = (_blocks(layer), LANES)
    out = (layer.data[0], channels[0], *layer.window.positions(*layer.data[2:]), 1, LANES)
    attrs: dict[str, AttrValue] = {
        **window,
        "dilation": layer.window.dilation,
        "fill": layer.fill,
        "zero": layer.zero,
        "lo": layer.clip[0],
        "hi": layer.clip[1],
    }
    return Workload(
        operator=operator,
        inputs=(
            TensorSpec("data", data, layer.dtype),
            TensorSpec("weight", weight, layer.weight_dtype),
            TensorSpec("bias", channels, DType.INT32),
            TensorSpec("scale", channels, DType.FLOAT32),
        ),
        outputs=(TensorSpec("out", out, layer.dtype),),
        attrs=tuple(attrs.items()),
    )


def _packed_blocks(weight: NDArray[Any], together: int) -> NDArray[Any]:
    """[Co/l, Ci/c, Kh, Kw, c/p, l, p]"""
    tiles = to_blocks(weight, LANES, LANES)
    *outer, lanes, _ = tiles.shape
    return np.ascontiguousarray(tiles.reshape(*outer, lanes, -1, together).swapaxes(-3, -2))


def _packed_groups(weight: NDArray[Any], together: int) -> NDArray[Any]:
    """As `_packed_blocks`; of a lone block only quads, or pairs, that have channels."""
    groups = _groups(weight.shape[1], together)
    return np.ascontiguousarray(_packed_blocks(weight, together)[..., :groups, :, :])


def _groups(inputs: int, together: int) -> int:
    """Quads or pairs of channels of every block that are multiplied."""
    return -(-min(inputs, LANES) // together)


def _packed_points(weight: NDArray[Any], together: int) -> NDArray[Any]:
    """[Co/l, 6, Ci/c, Kh, c/2, l, 2]"""
    points = points_of(weight)
    return np.ascontiguousarray(np.moveaxis(_packed_blocks(points, together), 3, 1))


def _packed_rows(weight: NDArray[Any], together: int) -> NDArray[Any]:
    """[Co/l, 1, Kh, Kw*Ci/p, 1, l, p]"""
    co, ci, kernel_h, kernel_w = weight.shape
    taps = weight.transpose(0, 2, 3, 1).reshape(co, kernel_h, kernel_w * ci)
    return _lanes_inside(_grouped(taps, together))[:, None, :, :, None]


def _packed_channels(weight: NDArray[Any], together: int) -> NDArray[Any]:
    """[C/c, Kh, Kw/p, c, p]"""
    return _lanes_inside(_grouped(weight[:, 0], together))


def _grouped(taps: NDArray[Any], together: int) -> NDArray[Any]:
    """[Co, Kh, K] as [Co, Kh, K/p, p], filled up with zeros."""
    co, kernel_h, count = taps.shape
    whole = np.zeros((co, kernel_h, -(-count // together) * together), taps.dtype)
    whole[..., :count] = taps
    return whole.reshape(co, kernel_h, -1, together)


def _lanes_inside(groups: NDArray[Any]) -> NDArray[Any]:
    """[Co, Kh, G, p] as [Co/l, Kh, G, l, p]."""
    co, *rest = groups.shape
    whole = np.zeros((-(-co // LANES) * LANES, *rest), groups.dtype)
    whole[:co] = groups
    return np.ascontiguousarray(whole.reshape(-1, LANES, *rest).transpose(0, 2, 3, 1, 4))


_FORMS: Final[Mapping[str, Callable[[QLinearLayer], Workload]]] = {
    "blocks": _of_blocks,
    "winograd": _of_points,
    "rows": _of_rows,
    "depthwise": _of_channels,
}
_PACKERS: Final[Mapping[str, Callable[[NDArray[Any], int], NDArray[Any]]]] = {
    "blocks": _packed_groups,
    "winograd": _packed_points,
    "rows": _packed_rows,
    "depthwise": _packed_channels,
}
