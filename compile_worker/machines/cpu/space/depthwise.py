"""The space of `qlinear_depthwise2d`: pixels whose sums stay in registers, rows of a tile, and
whether threads share blocks of channels.

for blocks of channels: for rows of the output:
  the image is padded, and its rows become quads or pairs of neighbouring taps
  for rows: for pixels: sums over the window

Or quads are made of the pixels where they are multiplied, as often as there are rows in the window.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Final

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step
from tilefarm.workload import Workload

from compile_worker.draft import Draft
from compile_worker.generated import Generated
from compile_worker.isa import isa_of
from compile_worker.machines.cpu.space.windows import (
    STACK,
    cut,
    declare_rows,
    declare_shared,
    declare_sums,
    first_valid,
    is_padded,
    is_wide,
    padded_row_nbytes,
    pixel_cost,
    rows_seen,
    shared_step,
)
from compile_worker.passes.flatten import LOCAL_NBYTES
from compile_worker.te.operators.qlinear import taps_apart

VERSION: Final = 2
"""Changes when the points of old records would mean other schedules."""

_INT16_NBYTES: Final = 2
_WITH_PLANES: Final = 6
"""Axes of weights in planes."""
_SHARE: Final = 4
"""One register in so many has sums where taps take others: 2 pixels on AVX2, as measured best."""
_LOOPS: Final = ("taps outside", "pixels outside")
_PLACES: Final = ("by tile", "by pixels", "in registers")
_BY_TILE, _BY_PIXELS, _IN_REGISTERS = range(len(_PLACES))
_ENOUGH: Final = 12
"""Pixels whose sums wait for nobody: of more, LLVM loads the taps too early, and stores them."""


def depthwise_space(workload: Workload, target: Target) -> Generated:
    """The space of a depthwise convolution; its default has tall tiles."""
    draft = Draft()
    declare_sums(draft, workload, target, blocks=1)
    declare_rows(draft, workload, kernel_h=workload.inputs[1].shape[1])
    draft.tunable("loops", range(len(_LOOPS)), _LOOPS)
    places = _PLACES[:_IN_REGISTERS] if is_wide(workload) else _PLACES
    draft.tunable("place", range(len(places)), places)
    _declare_stack(draft, workload)
    draft.constant("order", 0)
    draft.constant("block_tiles", workload.outputs[0].shape[1])
    declare_shared(draft, workload, target, ("block_tiles",))
    space = draft.space(
        workload.operator, VERSION, first_valid(draft, _wished(draft, workload, target))
    )
    return Generated(space, partial(_steps, workload))


def _declare_stack(draft: Draft, workload: Workload) -> None:
    """The taps, and what is padded, of a tile or of some pixels of a row fit the stack."""
    _, kernel_h, kernel_w, *_, lanes, together = workload.inputs[1].shape
    reach = rows_seen(workload, kernel_h)
    _, (across, further) = taps_apart(workload)
    vector = lanes * together * (_INT16_NBYTES if is_wide(workload) else 1)
    beside = (kernel_w - 1) * further + 1 - across
    row = (workload.outputs[0].shape[3] * across + beside) * vector
    draft.prod("taps_of_tile", "input_rows", coefficient=row)
    draft.total(
        "taps_of_pixels",
        {"pixels": reach * vector * across},
        constant=reach * vector * beside,
    )
    draft.constant("taps_in_registers", 0)
    taps = ("taps_of_tile", "taps_of_pixels", "taps_in_registers")
    draft.select("taps_nbytes", "place", taps[: len(draft.domain("place"))])
    draft.at_most("stack_holds_taps", "taps_nbytes", LOCAL_NBYTES, why=STACK)
    if is_padded(workload):
        step, apart = workload.attr_ints("stride")[1], workload.attr_ints("dilation")[1]
        columns = (kernel_w * together - 1) * apart + 1
        pixel = reach * lanes
        draft.prod("padded_of_tile", "input_rows", coefficient=padded_row_nbytes(workload))
        draft.total("padded_of_pixels", {"pixels": pixel * step}, constant=pixel * (columns - step))
        padded = ("padded_of_tile", "padded_of_pixels", "padded_of_tile")
        draft.select("padded_nbytes", "place", padded[: len(draft.domain("place"))])
        draft.at_most("stack_holds_padding", "padded_nbytes", LOCAL_NBYTES, why=STACK)


def _wished(draft: Draft, workload: Workload, target: Target) -> Iterator[dict[str, int]]:
    """Points from the one that is best as a rule.

    Where one instruction weaves a quad of all lanes, that is done in registers. Elsewhere taps are
    made once for a tile where rows of the output see many of the same rows; where they see few of
    them, as at stride 2, for so few pixels that the taps stay in registers as well.
    """
    isa, lanes = isa_of(target.host), workload.outputs[0].shape[-1]
    few = isa.registers * isa.lanes // lanes // _SHARE
    shares, tiles = draft.domain("shared")[::-1], draft.domain("rows")[::-1]
    most, places = draft.domain("pixels")[-1], [_BY_TILE, _BY_PIXELS]
    if workload.attr_ints("stride")[0] > 1:
        most, places = few, [_BY_PIXELS, _BY_TILE]
    if isa.has_byte_tables and _IN_REGISTERS in draft.domain("place"):
        most, places = _ENOUGH, [_IN_REGISTERS, *places]
    width = workload.outputs[0].shape[3]
    pixels_of = sorted(
        draft.domain("pixels"), key=lambda pixels: (pixels > most, pixel_cost(width, pixels))
    )
    for shared, place, rows, pixels in product(shares, places, tiles, pixels_of):
        yield {
            "pixels": pixels,
            "blocks": 1,
            "rows": rows,
            "loops": int(place != _BY_TILE),
            "place": place,
            "shared": shared,
        }


def _steps(workload: Workload, point: Point) -> Iterator[Step]:
    """The schedule of a point."""
    yield cut("out_w", workload.outputs[0].shape[3], point["pixels"])
    yield Step("split", ("out_h", point["rows"]))
    yield Step("reorder", ("out_co", "out_h_0", "out_h_1", "out_w_0", "out_w_1"))
    yield Step("compute_at", ("conv", "out_w_0"))
    planes = ("conv_p",) if len(workload.inputs[1].shape) == _WITH_PLANES else ()
    window, pixels = ("conv_kh", "conv_kw", *planes), ("conv_w",)
    loops = (*window, *pixels) if point["loops"] == 0 else (*pixels, *window)
    yield Step("reorder", (*loops, "conv_b", "conv_j", "conv_o"))
    for loop in ("conv_w", "conv_kh", *planes, "out_w_1"):
        yield Step("unroll", (loop,))
    place = "out_w_0" if point["place"] == _BY_PIXELS else "out_h_0"
    if point["place"] == _IN_REGISTERS:
        yield Step("compute_inline", ("taps",))
    else:
        yield Step("unroll", ("taps_j",))
        yield Step("compute_at", ("taps", place))
    if is_padded(workload):
        yield Step("compute_at", ("padded", place))
    yield from shared_step(workload, point, "out_co")
