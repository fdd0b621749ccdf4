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

from compile_worker.draft import Draft
from compile_worker.machines.vta.space.layer import REDUCED, SPATIAL, GemmLayer
from compile_worker.machines.vta.space.loop_orders import TILE_ORDERS

ONE, EVEN, ODD = range(3)
"""Kinds of loops by their trips."""

STEP, TILE, ROW, ONCE = range(4)
"""Places of loads, as `operands` lists them; weights have no rows."""

_PIXELS: Final = ("oh", "ow")

Bits = Mapping[str, int]
"""What each loop is in a set of loops, 0 if it never repeats; steps are the highest."""


def declare_slot_keys(draft: Draft, layer: GemmLayer, target: Target) -> None:
    """gemm_keys, from what bases depend on and how the slots combine."""
    keys = ["part_keys", "co_keys", "batch_keys", "pixel_keys"]
    if target.limits.buffers == 2:
        bits = _bits(layer)
        _parities(draft, layer)
        _turns(draft, layer, bits)
        _combinations(draft, bits, depthwise=layer.depthwise)
        draft.prod("gemm_keys", *keys, "slot_combinations")
    else:
        draft.prod("gemm_keys", *keys, "slot_cases", "acc_slots")


def _bits(layer: GemmLayer) -> Bits:
    """The loops over tiles, those around them as one, and those over reduction steps as one."""
    trips = {axis: layer.extents[axis] for axis in SPATIAL} | {"around": layer.batches}
    names = [*(name for name in trips if trips[name] > 1), "step"]
    return dict.fromkeys(trips, 0) | {name: 1 << at for at, name in enumerate(names)}


def _parities(draft: Draft, layer: GemmLayer) -> None:
    """parity_*: whether a loop runs once, or an even or odd number of times.

    Phases are inside tiles of co: together both are as one loop over all of co.
    """
    for axis in (*SPATIAL, *REDUCED):
        draft.table(
            f"trips_of_{axis}",
            [f"tile_{axis}"],
            [f"parity_{axis}"],
            ((size, _parity(layer.extents[axis] // size)) for size in draft.domain(f"tile_{axis}")),
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


def _turns(draft: Draft, layer: GemmLayer, bits: Bits) -> None:
    """*_turn: the loops that the parity of a turn depends on."""
    draft.table(
        "turns",
        ["tile_order", *(f"parity_{axis}" for axis in SPATIAL)],
        ["tile_turn", "pixel_turn", "row_turn", "co_turn"],
        _turn_rows(layer, bits),
    )
    draft.table(
        "step_turns",
        ["tile_turn", "parity_step"],
        ["step_turn"],
        (
            (tile, kind, tile * (kind != EVEN) + bits["step"] * (kind != ONE))
            for tile, kind in product(range(bits["step"]), range(3))
        ),
    )


def _turn_rows(layer: GemmLayer, bits: Bits) -> Iterator[tuple[int, ...]]:
    around = _parity(layer.batches)
    for order, axes in enumerate(TILE_ORDERS):
        first, last = sorted(_PIXELS, key=axes.index)
        loops = ("around", *axes)
        for kinds in product(range(3), repeat=len(SPATIAL)):
            trips = dict(zip(SPATIAL, kinds, strict=True)) | {"around": around}
            ends = (axes[-1], last if layer.has_pixels else "around", first, "co")
            turns = (_turn(loops[: loops.index(end) + 1], trips, bits) for end in ends)
            yield (order, *kinds, *turns)


def _turn(loops: Sequence[str], trips: Mapping[str, int], bits: Bits) -> int:
    """The loops, outermost first, of which an odd number of turns is inside."""
    found = 0
    for at, axis in enumerate(loops):
        inside = [trips[inner] for inner in loops[at + 1 :]]
        if trips[axis] != ONE and EVEN not in inside:
            found |= bits[axis]
    return found


def _combinations(draft: Draft, bits: Bits, *, depthwise: bool) -> None:
    """slot_combinations: two to the power of how many slots are independent."""
    draft.table(
        "known_loops",
        ["data_at", "weight_at", "tile_order", "base_of_co", "base_of_batch"],
        ["known"],
        _known_rows(bits),
        why="what a key tells is known",
    )
    every = 2 * bits["step"]
    draft.constant("no_turn", 0)
    tile = "tile_turn" if depthwise else "pixel_turn"
    turns = ["step_turn", tile, "row_turn", "no_turn"]
    draft.select("data_turn", "data_at", turns)
    draft.select("weight_turn", "weight_at", ["step_turn", "co_turn", "no_turn"])
    several = {"data": "slots", "weight": "slots", "tile": "acc_slots"}
    for name, slots in several.items():
        turn = f"{name}_turn"
        choices = ["no_turn", "no_turn", turn]
        draft.select(f"{name}_slot_turn", slots, choices, domain=range(every))
        draft.table(
            f"{name}_open_turns",
            [f"{name}_slot_turn", "known"],
            [f"{name}_open_turn"],
            ((turn, known, turn & ~known) for turn, known in product(range(every), repeat=2)),
        )
    operands = ["data_open_turn", "weight_open_turn"]
    draft.table("operand_turns", operands, ["operand_span"], _span_rows(every))
    draft.table(
        "slots_together",
        ["operand_span", "tile_open_turn"],
        ["slot_combinations"],
        _case_rows(every),
        why="slots that follow from one another make no more cases",
    )


def _known_rows(bits: Bits) -> Iterator[tuple[int, ...]]:
    """(places of data and weights, order, what bases depend on, the loops that a key tells)."""
    bases = product(range(2), repeat=2)
    places = product(range(4), range(3), enumerate(TILE_ORDERS), bases)
    for data, weight, (order, axes), (co, batch) in places:
        other = max(_PIXELS, key=axes.index)
        pixels = {ROW: bits[other], ONCE: bits["oh"] | bits["ow"]}.get(data, 0)
        step = 0 if data == weight == STEP else bits["step"]
        known = pixels | step | co * bits["co"] | batch * bits["around"]
        yield data, weight, order, co, batch, known


def _span_rows(every: int) -> Iterator[tuple[int, int, int]]:
    """(turn of data, of weights, the two smallest of their sums as one number).

    Of steps, both operands have the same turn: that of what is loaded for every step.
    """
    for data, weight in product(range(every), repeat=2):
        if data == weight or max(data, weight) < every // 2:
            first, second, *_ = (*sorted({data, weight, data ^ weight} - {0}), 0, 0)
            yield data, weight, first + every * second


def _case_rows(every: int) -> Iterator[tuple[int, int, int]]:
    """(what `_span_rows` gives, turn of the tile, values that the parities take together).

    Each turn that is no sum of others doubles them.
    """
    spans = sorted({span for _, _, span in _span_rows(every)})
    for span, tile in product(spans, range(every // 2)):
        second, first = divmod(span, every)
        sums = {0, first, second, first ^ second}
        yield span, tile, len(sums) * (1 if tile in sums else 2)
