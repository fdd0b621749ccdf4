"""How many cases of micro-ops a GEMM has: combinations of the slots that its operands are in.

    acc = turn of the tile mod 2      inp = turn of the step mod 2      wgt = turn of co mod 2

A slot is the parity of a sum of loop variables, so that slots may follow from one another: of sums
that are independent, modulo what a key tells anyway, each doubles the cases. A set of loops is a
number with a bit for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from tilefarm.target import Target

from compile_worker.space.constraints import Draft
from compile_worker.space.layer import REDUCED, SPATIAL, Layer
from compile_worker.space.loop_orders import TILE_ORDERS

BITS: Final[Mapping[str, int]] = {"co": 1, "oh": 2, "ow": 4, "step": 8}
ONE, EVEN, ODD = range(3)
"""Kinds of loops by their trips."""

STEP, TILE, ROW, ONCE = range(4)
"""Places of loads, as `operands` lists them; weights have no rows."""

_PIXELS: Final = ("oh", "ow")
_TILES: Final = 8


def declare_slot_keys(draft: Draft, layer: Layer, target: Target) -> None:
    """gemm_keys, from what bases depend on and how the slots combine."""
    keys = ["part_keys", "co_keys", "batch_keys", "pixel_keys"]
    alone = layer.batches == 1 and layer.phase_count == 1 and not layer.depthwise
    if target.limits.buffers == 2 and alone:
        _parities(draft)
        _turns(draft)
        _combinations(draft)
        draft.prod("gemm_keys", *keys, "slot_combinations")
    else:
        draft.prod("gemm_keys", *keys, "slot_cases", "acc_slots")


def _parities(draft: Draft) -> None:
    """parity_*: whether a loop runs once, or an even or odd number of times."""
    for axis in (*SPATIAL, *REDUCED):
        sizes = draft.domain(f"tile_{axis}")
        extent = max(sizes)
        draft.table(
            f"trips_of_{axis}",
            [f"tile_{axis}"],
            [f"parity_{axis}"],
            ((size, _parity(extent // size)) for size in sizes),
        )
    draft.table(
        "trips_of_steps",
        [f"parity_{axis}" for axis in REDUCED],
        ["parity_step"],
        ((*kinds, _together(kinds)) for kinds in product(range(3), repeat=len(REDUCED))),
    )


def _parity(trips: int) -> int:
    return ONE if trips == 1 else ODD if trips % 2 else EVEN


def _together(kinds: Sequence[int]) -> int:
    return EVEN if EVEN in kinds else ODD if ODD in kinds else ONE


def _turns(draft: Draft) -> None:
    """*_turn: the loops that the parity of a turn depends on."""
    draft.table(
        "turns",
        ["tile_order", *(f"parity_{axis}" for axis in SPATIAL)],
        ["tile_turn", "pixel_turn", "row_turn", "co_turn"],
        _turn_rows(),
    )
    draft.table(
        "step_turns",
        ["tile_turn", "parity_step"],
        ["step_turn"],
        (
            (tile, kind, tile * (kind != EVEN) + BITS["step"] * (kind != ONE))
            for tile, kind in product(range(_TILES), range(3))
        ),
    )


def _turn_rows() -> Iterator[tuple[int, ...]]:
    for order, axes in enumerate(TILE_ORDERS):
        first, last = sorted(_PIXELS, key=axes.index)
        for kinds in product(range(3), repeat=len(SPATIAL)):
            trips = dict(zip(SPATIAL, kinds, strict=True))
            ends = (axes[-1], last, first, "co")
            yield (order, *kinds, *(_turn(axes[: axes.index(end) + 1], trips) for end in ends))


def _turn(loops: Sequence[str], trips: Mapping[str, int]) -> int:
    """The loops, outermost first, of which an odd number of turns is inside."""
    bits = 0
    for at, axis in enumerate(loops):
        inside = [trips[inner] for inner in loops[at + 1 :]]
        if trips[axis] != ONE and EVEN not in inside:
            bits |= BITS[axis]
    return bits


def _combinations(draft: Draft) -> None:
    """slot_combinations: two to the power of how many slots are independent."""
    draft.table(
        "known_loops",
        ["data_at", "weight_at", "tile_order"],
        ["known"],
        (
            (data, weight, order, _known(data, weight, axes))
            for data, weight, (order, axes) in product(range(4), range(3), enumerate(TILE_ORDERS))
        ),
        why="what a key tells is known",
    )
    draft.constant("no_turn", 0)
    turns = ["step_turn", "pixel_turn", "row_turn", "no_turn"]
    draft.select("data_turn", "data_at", turns)
    draft.select("weight_turn", "weight_at", ["step_turn", "co_turn", "no_turn"])
    several = {"data": "slots", "weight": "slots", "tile": "acc_slots"}
    for name, slots in several.items():
        turn = f"{name}_turn"
        choices = ["no_turn", "no_turn", turn]
        draft.select(f"{name}_slot_turn", slots, choices, domain=range(2 * _TILES))
        draft.table(
            f"{name}_open_turns",
            [f"{name}_slot_turn", "known"],
            [f"{name}_open_turn"],
            ((bits, known, bits & ~known) for bits, known in product(range(16), repeat=2)),
        )
    draft.table(
        "slots_together",
        [f"{name}_open_turn" for name in several],
        ["slot_combinations"],
        _rank_rows(),
        why="slots that follow from one another make no more cases",
    )


def _known(data: int, weight: int, axes: Sequence[str]) -> int:
    """The loops that bases depend on, whatever the slots are."""
    other = max(_PIXELS, key=axes.index)
    bits = {ROW: BITS[other], ONCE: BITS["oh"] | BITS["ow"]}.get(data, 0)
    bits |= BITS["co"] if weight == 2 else 0
    return bits | (0 if data == weight == STEP else BITS["step"])


def _rank_rows() -> Iterator[tuple[int, ...]]:
    """Of steps, both operands have the same turn: that of what is loaded for every step."""
    for data, weight, tile in product(range(16), range(16), range(_TILES)):
        if data == weight or max(data, weight) < _TILES:
            yield data, weight, tile, _cases((data, weight, tile))


def _cases(turns: Sequence[int]) -> int:
    """Values that the parities take together."""
    return len(
        {tuple((turn & loops).bit_count() % 2 for turn in turns) for loops in range(1 << len(BITS))}
    )
