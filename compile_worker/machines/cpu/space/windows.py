"""What the spaces of window operators share: sums in registers, and rows of a tile on the stack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product, starmap
from math import prod
from typing import Final

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step
from tilefarm.workload import Workload

from compile_worker.draft import Draft, Emptied
from compile_worker.isa import isa_of
from compile_worker.passes.flatten import LOCAL_NBYTES
from compile_worker.schedule.loops import tile_step
from compile_worker.te.operators.qlinear import PAIR

SPARE: Final = 4
"""Vector registers that sums leave to what is multiplied."""

_MOST_BLOCKS: Final = 8
"""Blocks of channels at a time, at most: more leave too few registers for pixels."""

_MOST_COMPUTED: Final = 1.25
"""How often tiles that overlap may compute an iteration, in the mean."""

_GRAIN: Final = 1 << 19
"""Products that are worth a round of threads: five to ten microseconds, where a round takes one."""

_SHARED: Final = ("one thread", "all threads")

ORDERS: Final = ("rows outside", "channels outside")
"""Which loops are around the others, of those that choose a tile."""

SKIPPED: Final = 2
"""The value of `padding` for: nothing is copied, and taps that see no pixel are left out."""

STACK: Final = f"a local buffer has {LOCAL_NBYTES} bytes on the stack"


def divisors(extent: int, most: int) -> list[int]:
    """The divisors of an extent, up to a limit."""
    return [each for each in range(1, min(extent, most) + 1) if extent % each == 0]


def tile_sizes(extent: int, most: int) -> list[int]:
    """Sizes of tiles that fill an extent, up to a limit, and have little in common."""
    return [each for each in range(1, min(extent, most) + 1) if is_tile(extent, each)]


def tall_tiles(extent: int) -> list[int]:
    """The least size of tiles for every number of them that fills an extent."""
    found = (_least_tile(extent, count) for count in range(1, extent + 1))
    return sorted(tile for tile in found if tile)


def _least_tile(extent: int, count: int) -> int:
    """The least size of tiles of which so many fill an extent; 0 if no size is worth it."""
    for step in range(extent // count, 0, -1):
        tile = extent - (count - 1) * step
        if count * tile > _MOST_COMPUTED * extent:
            break
        if tiles(extent, tile) == count:
            return tile
    return 0


def is_tile(extent: int, tile: int) -> bool:
    """Whether tiles of this size fill an extent, and have little in common."""
    return bool(_computed(extent, tile))


def pixel_cost(extent: int, pixels: int) -> float:
    """What a product takes in tiles of so many pixels, as a multiple of the product itself.

    Weights are loaded for each tile: half a product's time, as measured on AVX2.
    """
    return _computed(extent, pixels) / extent * (1 + 0.5 / pixels)


def tiles(extent: int, tile: int) -> int:
    """How many tiles of this size fill an extent; 0 if none do."""
    step = tile_step(extent, tile)
    return (extent - tile) // step + 1 if step else 0


def _computed(extent: int, tile: int) -> int:
    """Iterations of all tiles; 0 if they do not fill the extent, or have too much in common."""
    computed = tile * tiles(extent, tile)
    return computed if computed <= _MOST_COMPUTED * extent else 0


def cut(loop: str, extent: int, tile: int) -> Step:
    """The step that cuts a loop into tiles of this size, one of `tile_sizes`."""
    return Step("overlap" if extent % tile else "split", (loop, tile))


def declare_sums(draft: Draft, workload: Workload, target: Target, blocks: int) -> None:
    """How many `pixels` of a row, and `blocks` of channels, have their sums in registers."""
    shape = workload.outputs[0].shape
    declare_block(draft, target, shape[-1], pixels=shape[3:4], blocks=blocks)


def declare_block(
    draft: Draft, target: Target, lanes: int, pixels: Iterable[int], blocks: int
) -> None:
    """How many `pixels` and `blocks` of lanes have their sums in registers.

    Args:
        pixels: numbers of pixels of which any may be cut.
        blocks: of lanes, all that there are.
    """
    isa = isa_of(target.host)
    vectors = -(-lanes // isa.lanes)
    room = max(vectors, isa.registers - SPARE)
    draft.tunable("pixels", {size for each in pixels for size in tile_sizes(each, room)})
    draft.tunable("blocks", divisors(blocks, _MOST_BLOCKS))
    draft.prod("sums", "pixels", "blocks", coefficient=vectors)
    why = f"{isa.registers} vector registers hold sums, and {SPARE} of them operands"
    draft.at_most("registers", "sums", room, why=why)


def declare_rows(draft: Draft, workload: Workload, kernel_h: int) -> None:
    """How many `rows` of the output are a tile, which sees so many `input_rows`."""
    height, step = workload.outputs[0].shape[2], workload.attr_ints("stride")[0]
    draft.tunable("rows", divisors(height, height))
    draft.total("input_rows", {"rows": step}, constant=rows_seen(workload, kernel_h) - step)


def declare_shared(draft: Draft, workload: Workload, target: Target, orders: Sequence[str]) -> None:
    """Whether threads share the outermost loop: `shared`, where it is worth a round of them.

    Of several images these are shared. Otherwise every thread has an iteration of what is outermost
    in the `order` of the point: `orders` are the variables that count those.
    """
    threads, (images, *_) = target.model.threads, workload.outputs[0].shape
    if threads == 1 or products(workload) < _GRAIN:
        draft.constant("shared", 0)
        return
    draft.tunable("shared", range(len(_SHARED)), _SHARED)
    if images > 1:
        return
    draft.select("outer_tiles", "order", orders)
    draft.prod("wanted_tiles", "shared", coefficient=threads)
    why = f"each of {threads} threads has a tile"
    draft.at_most("tiles_for_threads", "wanted_tiles", "outer_tiles", why=why)


def declare_tiles(draft: Draft, name: str, of: str, extent: int) -> None:
    """A variable `name`: how many tiles of so many as `of` says an extent is cut into."""
    rows = [(each, tiles(extent, each)) for each in draft.domain(of)]
    draft.table(f"table_{name}", (of,), (name,), rows)


def products(workload: Workload) -> int:
    """Multiplications of a convolution."""
    data, weight = workload.inputs[:2]
    pixels = prod(workload.outputs[0].shape[2:4]) * data.shape[0]
    return pixels * prod(weight.shape)


def shared_step(workload: Workload, point: Point, outermost: str) -> Iterator[Step]:
    """The step that gives threads the outermost loop, if the point says so."""
    if point["shared"]:
        yield Step("parallel", ("out_n" if workload.outputs[0].shape[0] > 1 else outermost,))


def rows_seen(workload: Workload, kernel_h: int) -> int:
    """Rows of the image that one row of the output sees."""
    return (kernel_h - 1) * workload.attr_ints("dilation")[0] + 1


def is_padded(workload: Workload) -> bool:
    """Whether there is anything around the image."""
    return any(workload.attr_ints("pad"))


def is_wide(workload: Workload) -> bool:
    """Whether the image is copied as int16, for weights that come in pairs."""
    return workload.inputs[1].shape[-1] == PAIR


def padded_row_nbytes(workload: Workload) -> int:
    """Bytes of one row of a block of the padded image."""
    *_, width, batch, lanes = workload.inputs[0].shape
    _, left, _, right = workload.attr_ints("pad")
    return (left + width + right) * batch * lanes * (2 if is_wide(workload) else 1)


def first_valid(draft: Draft, points: Iterable[dict[str, int]]) -> dict[str, int]:
    """The first of some points that is valid, with a value for every variable.

    Raises:
        Emptied: none of them is.
    """
    for point in points:
        if draft.holds(full := draft.completed(point)):
            return full
    raise Emptied(*draft.blamed)


def best_blocks(
    draft: Draft, workload: Workload, target: Target, *around: str
) -> list[dict[str, int]]:
    """All `pixels` and `blocks`, those first that are best as a rule: many pixels, few sums.

    Blocks may be in tiles, of sizes that `around` names from the outermost: these are chosen as
    well, since what tiles have in common is computed again where their blocks overlap too.

    Two thirds of the vector registers hold sums: of more LLVM moves some about, at branches and
    where much is done with a sum in the end. Where weights have a zero point, of many blocks: what
    that adds to the sums of a pixel is one more sum for all of them.
    """
    isa, shape = isa_of(target.host), workload.outputs[0].shape
    most = isa.registers * 2 // 3 // -(-shape[-1] // isa.lanes)
    has_zero = workload.tensor("weight_zero") is not None

    def liked(block: dict[str, int]) -> tuple[bool, float, float]:
        pixels, blocks = block["pixels"], block["blocks"]
        extents = (shape[3], *(block[each] for each in around), pixels)
        cost = prod(starmap(pixel_cost, pairwise(extents)))
        if has_zero:
            return pixels * (blocks + 1) > most, -blocks, cost
        return pixels * blocks > most, cost, -blocks

    blocks = filter(draft.allows, most_first(draft, *around, "pixels", "blocks"))
    return sorted(blocks, key=liked)


def most_first(draft: Draft, *names: str) -> list[dict[str, int]]:
    """All values of some variables: largest products first, of those the most alike factors."""
    values = [dict(zip(names, each, strict=True)) for each in product(*map(draft.domain, names))]
    return sorted(values, key=lambda each: (-prod(each.values()), max(each.values())))


def sums_in_registers(
    loop: str,
    pixels: str,
    innermost: str,
    *,
    has_zeros: bool = False,
    matrices: Iterable[Step] = (),
) -> Iterator[Step]:
    """Compute the sums of a block inside `loop`, over the whole reduction, and write them out.

    Pixels are before blocks, so that a quad of data is spread only once.

    Args:
        loop: of the output, around a block of `pixels` and channels.
        innermost: the axis of the reduction inside the window.
        has_zeros: the sums of what is multiplied by the weights' zero point are there too.
        matrices: the steps that make products of matrices of the sums, if they are that.
    """
    reduction = ("ci", "kh", "kw", innermost, "w", "co", "b", "j", "o")
    if has_zeros:
        yield Step("compute_at", ("zeros", loop))
        yield Step("reorder", tuple(f"zeros_{each}" for each in reduction if each != "co"))
        yield Step("unroll", ("zeros_w",))
    yield Step("compute_at", ("conv", loop))
    dots = (
        Step("reorder", tuple(f"conv_{each}" for each in reduction)),
        *(Step("unroll", (f"conv_{each}",)) for each in ("w", "co")),
    )
    yield from tuple(matrices) or dots
    for each in (pixels, "out_co_1"):
        yield Step("unroll", (each,))


def copy_at(copy: str, point: Point) -> Iterator[Step]:
    """What is copied for a block, if anything is: a tile of the image, or a step of the sums.

    Where the point says that nothing is, the stage is inlined as any other, and columns of the
    window are written out, so that it is known
    which pixels of a row they see.
    """
    if copy and point["padding"] == SKIPPED:
        yield Step("unroll", ("conv_kw",))
    elif copy:
        yield Step("compute_at", (copy, "out_h_0" if point["padding"] == 0 else "conv_ci"))
