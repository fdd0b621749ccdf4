"""Convolutions with fewer products: Winograd's minimal filtering along the rows of an image.

Four neighbouring results of a window of three columns take six products instead of twelve
(S. Winograd, "Arithmetic Complexity of Computations", 1980; F(4, 3) of A. Lavin and S. Gray, "Fast
Algorithms for Convolutional Neural Networks", 2016). Everything is a whole number here, so that the
sums are those of the convolution: pixels and weights of 8 bits become int16, and the results are 24
times the sums, which are divided without a rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

from tilefarm.dtype import DType
from tilefarm.workload import Workload

from compile_worker.ir.expr import Const, Eq, Expr, Select, Shr, Var, index
from compile_worker.te.operators.elementwise import widened
from compile_worker.te.operators.qlinear import PAIR, wide
from compile_worker.te.operators.qlinear_results import by_channel
from compile_worker.te.operators.window import scaled
from compile_worker.te.tensor import Reduction, Tensor, compute, total

TILE: Final = 4
"""Results of one tile of a row."""

POINTS: Final = 6
"""Products of one tile for each channel and row of the kernel, and pixels that it sees."""

MOST_TERMS: Final = (1 << 28) // (255 * 128)
"""Products of one sum of the convolution, at most: 24 times the sum wraps, an eighth of it not."""

_OF_PIXELS: Final = (
    (4, 0, -5, 0, 1, 0),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
    (0, 4, 0, -5, 0, 1),
)
"""What is multiplied: of six pixels. At most ten times 255, an int16."""

_OF_PRODUCTS: Final = (
    (1, 1, 1, 1, 1, 0),
    (0, 1, -1, 2, -2, 0),
    (0, 1, 1, 4, 4, 0),
    (0, 1, -1, 8, -8, 1),
)
"""24 times the results: of six sums of products."""

_THIRD: Final = -1431655765
"""3 times this is 1 modulo 2**32: a third of what has no rest, also where sums have wrapped."""


def qlinear_winograd2d(workload: Workload, inputs: list[Tensor]) -> list[Tensor]:
    """Stages wide, patches, sums, tiles, [conv] and the output.

    data [N, Ci, H, W, 1, c], weight int16 [Co, 6, Ci, Kh, c/2, l, 2]. Where tiles fill the rows of
    the output, it has them as an axis; otherwise `conv` is as much of the tiles as there is of it.

    Raises:
        ValueError: there are too many products for sums of 28 bits.
    """
    data, weight = inputs[:2]
    _, _, blocks, kernel_h, pairs, _, _ = weight.shape
    if (terms := blocks * kernel_h * pairs * PAIR * (POINTS - TILE + 1)) > MOST_TERMS:
        raise ValueError(f"{terms} products of one sum; minimal filtering adds {MOST_TERMS}")
    n, co, height, width, batch, lanes = workload.outputs[0].shape
    count = -(-width // TILE)
    image = _image(workload, data, count)
    patches = _patches(image, count)
    sums = _sums(workload, patches, weight)

    def element(*at: Var) -> Expr:
        *outer, row, tile, place, b, o = at
        products = [sums[*outer, row, a, tile, b, o] for a in range(POINTS)]
        found = _chosen(place, [_combined(each, products) for each in _OF_PRODUCTS])
        return Shr(found * _THIRD, Const(3, DType.INT32))

    axes = {"n": n, "co": co, "h": height, "t": count, "r": TILE, "b": batch, "o": lanes}
    tiles = compute("tiles", axes, element)
    before = [image, patches, sums, tiles]
    if fills_rows(workload):
        return [*before, by_channel(tiles, inputs, workload)]
    conv = _row(workload, tiles)
    return [*before, conv, by_channel(conv, inputs, workload)]


def fills_rows(workload: Workload) -> bool:
    """Whether tiles fill the rows of the output."""
    return workload.outputs[0].shape[3] % TILE == 0


def by_tile(workload: Workload) -> Workload:
    """The workload whose operand `other` has an axis of tiles, if the output has it too."""
    other = workload.tensor("other")
    if workload.operator != "qlinear_winograd2d" or other is None or not fills_rows(workload):
        return workload
    n, co, height, width, *lanes = other.shape
    seen = replace(other, shape=(n, co, height, width // TILE, TILE, *lanes))
    inputs = tuple(seen if each is other else each for each in workload.inputs)
    return replace(workload, inputs=inputs)


def _image(workload: Workload, data: Tensor, count: int) -> Tensor:
    """The padded image of int16, as wide as the tiles see it."""
    top, left, bottom, right = workload.attr_ints("pad")
    seen = count * TILE + POINTS - TILE
    return wide(workload, data, (top, left, bottom, max(right, seen - data.shape[3] - left)))


def _patches(image: Tensor, count: int) -> Tensor:
    """What is multiplied: six values for every tile, side by side as the tiles are."""
    n, ci, rows, _, batch, lanes = image.shape

    def element(*at: Var) -> Expr:
        *outer, point, tile, b, i = at
        pixels = [image[*outer, scaled(tile, TILE) + k, b, i] for k in range(POINTS)]
        return _chosen(point, [_combined(each, pixels) for each in _OF_PIXELS])

    axes = {"n": n, "ci": ci, "h": rows, "a": POINTS, "t": count, "b": batch, "i": lanes}
    return compute("patches", axes, element)


def _sums(workload: Workload, patches: Tensor, weight: Tensor) -> Tensor:
    """Of products, for every tile."""
    down, below = workload.attr_ints("stride")[0], workload.attr_ints("dilation")[0]
    _, _, blocks, kernel_h, pairs, _, _ = weight.shape
    n, co, height, _, batch, lanes = workload.outputs[0].shape
    count = patches.shape[4]

    def element(n: Var, co: Var, h: Var, a: Var, t: Var, b: Var, o: Var) -> Reduction:
        def product(ci: Var, kh: Var, q: Var, j: Var) -> Expr:
            row = scaled(h, down) + scaled(kh, below)
            pixel = widened(patches[n, ci, row, a, t, b, q * PAIR + j])
            return pixel * widened(weight[co, a, ci, kh, q, o, j])

        over = {"ci": blocks, "kh": kernel_h, "q": pairs, "j": PAIR}
        return total(DType.INT32, over, product)

    axes = {"n": n, "co": co, "h": height, "a": POINTS, "t": count, "b": batch, "o": lanes}
    return compute("sums", axes, element)


def _row(workload: Workload, tiles: Tensor) -> Tensor:
    """The sums of the convolution: as much of the tiles as the output has."""

    def element(*at: Var) -> Expr:
        *outer, column, b, o = at
        return tiles[*outer, column // TILE, column % TILE, b, o]

    axes = dict(zip(("n", "co", "h", "w", "b", "o"), workload.outputs[0].shape, strict=True))
    return compute("conv", axes, element)


def _combined(factors: Sequence[int], values: Sequence[Expr]) -> Expr:
    """The sum of values times factors, without those that are zero."""
    terms = [
        value if factor == 1 else value * factor
        for factor, value in zip(factors, values, strict=True)
        if factor
    ]
    return reduce(lambda a, b: a + b, terms)


def _chosen(at: Var, values: Sequence[Expr]) -> Expr:
    """The value with a number that is known once the loop is written out."""
    *others, last = enumerate(values)
    return reduce(
        lambda rest, each: Select(Eq(at, index(each[0])), each[1], rest), reversed(others), last[1]
    )
