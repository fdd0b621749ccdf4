"""Pixels of a layer side by side in one row, where no byte moves for it.

    1x1 of a narrow [H, W]          ->   1x1 of [1, H*W]
    Kh x Kw of a column [H, 1]      ->   Kw x Kh of a row [1, H]

A processor's kernels keep the sums of pixels of a row in registers, and of a column have one: rows
of a product are such a column, and lines as [N, C, L, 1]. Images of few channels stay, as their
rows are copied to the stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from numpy.typing import NDArray

from driver.network.graph.ir import Shape, Window
from driver.network.partition.qlinear_layers import PIXEL, is_along_rows

_WIDE: Final = 8
"""Pixels of a row that fill the registers by themselves. At 7x7 a row of all takes a quarter less
time; from 13x13 on some layers take 7 % less, others as much more."""

Image: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class PixelRows:
    """The image [N, C, H, W] that a layer reads, and its window; turned if it was a column."""

    data: Image
    window: Window
    is_turned: bool = False

    def taps(self, weight: NDArray[Any]) -> NDArray[Any]:
        """Weights [..., Kh, Kw] of the layer as it was."""
        return weight.swapaxes(-1, -2) if self.is_turned else weight


def in_rows(data: Shape, window: Window) -> PixelRows:
    """An image [N, C, H, W] with enough pixels in a row, and the window on it."""
    n, channels, height, width = data
    if is_column((height, width), window.positions(height, width)):
        return PixelRows((n, channels, width, height), _turned(window), is_turned=True)
    if window == PIXEL and width < _WIDE and not is_along_rows(channels, window):
        return PixelRows((n, channels, 1, height * width), window)
    return PixelRows((n, channels, height, width), window)


def is_column(image: Sequence[int], result: Sequence[int]) -> bool:
    """Whether an image (H, W), and the result of a layer on it, are the same bytes when turned."""
    return image[0] > 1 and image[1] == result[1] == 1


def turned_pad(pad: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """What is around an image (top, left, bottom, right), of the turned one."""
    top, left, bottom, right = pad
    return (left, top, right, bottom)


def _turned(window: Window) -> Window:
    (kernel_h, kernel_w), (down, across) = window.kernel, window.stride
    dilation_h, dilation_w = window.dilation
    return Window(
        kernel=(kernel_w, kernel_h),
        stride=(across, down),
        pad=turned_pad(window.pad),
        dilation=(dilation_w, dilation_h),
    )
