"""Add-Multi-Scope-SPM: the memory of every operand, how often it is loaded, in how many slots.

Fires on a stage whose operands belong into different scratchpads. An operand is loaded for every
step of the reduction, for every tile that needs another part, for every row of tiles, or once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step

from compile_worker.draft import Draft
from compile_worker.ir.annotations import DMA
from compile_worker.machines.vta import limits
from compile_worker.machines.vta.space.layer import SPATIAL, GemmLayer
from compile_worker.machines.vta.space.loop_orders import TILE_ORDERS
from compile_worker.machines.vta.space.tiling import tile_loop
from compile_worker.schedule.marks import annotate_step

WEIGHT_AT: Final = ("step", "tile", "once")
DATA_AT: Final = ("step", "tile", "row", "once")
STEP, TILE, ROW, ONCE = range(len(DATA_AT))
FLAGS: Final = (0, 1)


def declare_operands(draft: Draft, layer: GemmLayer, target: Target) -> None:
    """weight_at, data_at, slots; elements and loads of both; what their bases depend on."""
    draft.tunable("weight_at", range(len(WEIGHT_AT)), WEIGHT_AT)
    draft.tunable("data_at", range(len(DATA_AT)), DATA_AT)
    draft.tunable("slots", range(1, target.limits.buffers + 1))
    _positions(draft, layer)
    _weights(draft, layer)
    _image(draft, layer)
    _keys(draft, layer, target)
    draft.at_most("canonical_slots", "slots", "steps", why="slots that nothing alternates between")


def scope_steps(layer: GemmLayer, point: Point) -> Iterator[Step]:
    """Give every operand and every intermediate its memory."""
    del point
    if layer.image == "padded":
        yield Step("set_scope", ("padded", "inp"))
    else:
        yield Step("cache_read", ("data", "inp"))
    yield Step("cache_read", ("weight", "wgt"))
    for buffer in (layer.stage, *reversed(layer.epilogue.stages)):
        yield Step("set_scope", (buffer, "acc"))


def operand_steps(layer: GemmLayer, point: Point) -> Iterator[Step]:
    """Load both operands where the point says, into as many slots as it says."""
    moving = ("co", "oh", "ow") if layer.depthwise else ("oh", "ow")
    step = f"{layer.stage}_{layer.reduced[-1]}_0"
    row = {axis: tile_loop(layer, point, axis) for axis in ("oh", "ow")}
    first = next(axis for axis in TILE_ORDERS[point["tile_order"]] if axis in row)
    image = (step, tile_loop(layer, point, *moving), row[first], None)[point["data_at"]]
    weight = (step, tile_loop(layer, point, "co"), None)[point["weight_at"]]
    for stage, loop in ((layer.image, image), ("weight_wgt", weight)):
        if loop is not None:
            yield Step("compute_at", (stage, loop))
            yield Step("double_buffer", (stage, point["slots"]))
        yield annotate_step(DMA, stage, "load")


def _positions(draft: Draft, layer: GemmLayer) -> None:
    draft.require_rows(
        "canonical_weight_at",
        ["weight_at", "many_co", "many_reduced"],
        (
            (at, co, reduced)
            for at, co, reduced in product(range(len(WEIGHT_AT)), FLAGS, FLAGS)
            if (at != TILE or co or layer.weight_sets > 1) and (at, reduced) != (STEP, 0)
        ),
        why="loading inside a loop that runs once is loading outside of it",
    )
    draft.require_rows(
        "canonical_data_at",
        ["data_at", "tile_order", *(f"many_{axis}" for axis in SPATIAL), "many_reduced"],
        _data_rows(layer),
        why="loading inside a loop that runs once is loading outside of it",
    )
    draft.require_rows(
        "canonical_split",
        ["data_at", "weight_at", "many_reduced"],
        (
            (data, weight, reduced)
            for data, weight, reduced in product(range(len(DATA_AT)), range(len(WEIGHT_AT)), FLAGS)
            if not reduced or STEP in (data, weight)
        ),
        why="a reduction is cut into steps to load less at a time",
    )


def _data_rows(layer: GemmLayer) -> Iterator[tuple[int, ...]]:
    """(data_at, tile_order, are co, oh, ow, the reduction cut) where the loop loaded in runs often.

    Where two loops are the same place, the inner one counts.
    """
    moving = SPATIAL if layer.depthwise else SPATIAL[1:]
    for order, axes in enumerate(TILE_ORDERS):
        first = min("oh", "ow", key=axes.index)
        inside = [axis for axis in axes[axes.index(first) + 1 :] if axis in moving]
        outside = [axis for axis in axes[: axes.index(first)] if axis in moving]
        for flags in product(FLAGS, repeat=len(SPATIAL) + 1):
            many = dict(zip((*SPATIAL, "reduced"), flags, strict=True))
            alone = not many[first] and any(many[axis] for axis in outside)
            tile = any(many[axis] for axis in inside) or alone or layer.batches > 1
            often = {STEP: many["reduced"], TILE: tile, ROW: many[first], ONCE: True}
            yield from ((at, order, *flags) for at in often if often[at])


def _weights(draft: Draft, layer: GemmLayer) -> None:
    extents = layer.extents
    per_output = extents["ci"] * extents["kh"] * extents["kw"] * layer.planes
    step = ("tile_co", "tile_ci", "tile_kh", "tile_kw")
    draft.prod("wgt_step", *step, coefficient=layer.planes)
    draft.prod("wgt_tile", "tile_co", coefficient=per_output)
    draft.constant("wgt_once", extents["co"] * per_output * layer.weight_sets)
    draft.select("wgt_elements", "weight_at", ["wgt_step", "wgt_tile", "wgt_once"])
    draft.select("wgt_slots", "weight_at", ["slots", "slots", "one"])
    draft.prod("wgt_operand", "wgt_elements", "wgt_slots")
    draft.prod("trips_co_oh", "trips_co", "trips_oh")
    draft.prod("trips_co_ow", "trips_co", "trips_ow")
    draft.prod("trips_oh_ow", "trips_oh", "trips_ow")
    draft.prod("trips_co_oh_ow", "trips_co", "trips_oh", "trips_ow")
    runs = [_trips_down_to("co", order) for order in TILE_ORDERS]
    draft.select("co_changes", "tile_order", runs)
    draft.prod("wgt_tile_loads", "co_changes", coefficient=layer.batches)
    draft.select("wgt_loads", "weight_at", ["steps", "wgt_tile_loads", "one"])
    draft.prod("wgt_moved", "wgt_loads", "wgt_elements")


def _image(draft: Draft, layer: GemmLayer) -> None:
    for axis, name in enumerate(("h", "w")):
        _rows(draft, layer, axis, name)
    height, width = (layer.window(a, *_whole(layer, a)) for a in (0, 1))
    _image_blocks(draft, layer)
    draft.prod("inp_step", "inp_step_blocks", "ih", "iw")
    draft.prod("inp_tile", "inp_tile_blocks", "ih_tile", "iw_tile")
    draft.prod("inp_row_h", "inp_row_blocks", "ih_tile", coefficient=width)
    draft.prod("inp_row_w", "inp_row_blocks", "iw_tile", coefficient=height)
    rows = ["inp_row_h" if o.index("oh") < o.index("ow") else "inp_row_w" for o in TILE_ORDERS]
    draft.select("inp_row", "tile_order", rows)
    draft.constant("inp_once", layer.image_vectors)
    options = ["inp_step", "inp_tile", "inp_row", "inp_once"]
    draft.select("inp_elements", "data_at", options)
    draft.select("inp_slots", "data_at", ["slots", "slots", "slots", "one"])
    draft.prod("inp_operand", "inp_elements", "inp_slots")
    _image_loads(draft, layer)


def _image_blocks(draft: Draft, layer: GemmLayer) -> None:
    """Blocks of channels in a load for a step, for a tile and for a row of tiles."""
    draft.constant("all_ci", layer.image_blocks)
    step, tile = ("tile_co", "tile_co") if layer.depthwise else ("tile_ci", "all_ci")
    if layer.epilogue.data_planes > 1:
        step = draft.prod("step_planes", step, coefficient=layer.epilogue.data_planes)
        tile = step if layer.depthwise else tile
    draft.prod("inp_step_blocks", step)
    draft.prod("inp_tile_blocks", tile)
    outside = [order.index("co") < min(map(order.index, ("oh", "ow"))) for order in TILE_ORDERS]
    draft.select("inp_row_blocks", "tile_order", [tile if out else "all_ci" for out in outside])


def _image_loads(draft: Draft, layer: GemmLayer) -> None:
    """How often the image, or a part of it, is loaded."""
    moving = SPATIAL if layer.depthwise else SPATIAL[1:]
    last = [max(moving, key=order.index) for order in TILE_ORDERS]
    outer = [min("oh", "ow", key=order.index) for order in TILE_ORDERS]
    inner = [max("oh", "ow", key=order.index) for order in TILE_ORDERS]
    tiles = [_trips_down_to(axis, order) for axis, order in zip(last, TILE_ORDERS, strict=True)]
    rows = [_trips_down_to(axis, order) for axis, order in zip(outer, TILE_ORDERS, strict=True)]
    if not layer.has_pixels:
        tiles = ["one"] * len(tiles)
    draft.select("pixel_changes", "tile_order", tiles)
    draft.select("row_changes", "tile_order", rows)
    draft.select("row_tiles", "tile_order", [f"trips_{axis}" for axis in inner])
    draft.prod("inp_tile_loads", "pixel_changes", coefficient=layer.batches)
    draft.prod("inp_row_loads", "row_changes", coefficient=layer.batches)
    loads = ["steps", "inp_tile_loads", "inp_row_loads", "one"]
    draft.select("inp_loads", "data_at", loads)
    draft.prod("inp_moved", "inp_loads", "inp_elements")


def _rows(draft: Draft, layer: GemmLayer, axis: int, name: str) -> None:
    """Input rows (ih) or columns (iw) of a step, and of a tile with the whole kernel."""
    out, kernel = ("oh", "ow")[axis], ("kh", "kw")[axis]
    tiles, kernels = _choices(draft, out), _choices(draft, kernel)
    whole = layer.extents[kernel]
    fits = {key: _copies_fit(layer, axis, *key) for key in product(tiles, kernels)}
    once = _copies_fit(layer, axis, layer.extents[out], whole, layer.padded(axis))
    draft.table(
        f"window_{name}",
        [f"tile_{out}", f"tile_{kernel}"],
        [f"i{name}", f"i{name}_tile"],
        (
            (tile, part, layer.window(axis, tile, part), layer.window(axis, tile, whole))
            for tile, part in product(tiles, kernels)
        ),
    )
    if not once or not all(fits.values()):
        draft.require_rows(
            "dma_fields",
            ["data_at", f"tile_{out}", f"tile_{kernel}"],
            (
                (at, tile, part)
                for at, tile, part in product(range(len(DATA_AT)), tiles, kernels)
                if (once if at == ONCE else fits[(tile, part if at == STEP else whole)])
            ),
            why="a copy has at least one row and column that is not padding, and pads of 0 to 15",
        )


def _copies_fit(layer: GemmLayer, axis: int, tile: int, kernel: int, rows: int = 0) -> bool:
    """Whether every copy of a tile fits the fields of a LOAD: rows, columns and pads.

    A copy of so many `rows`, or of those that are under the tile.
    """
    out, window = layer.extents[("oh", "ow")[axis]], layer.extents[("kh", "kw")[axis]]
    size, before = (layer.rows, layer.columns)[axis], layer.pad[axis]
    every = layer.every(axis, tile, kernel)
    count = (rows - 1) // every + 1 if rows else layer.window(axis, tile, kernel)
    for first in range(0, out, tile):
        for part in range(0, window, kernel):
            start = first * layer.stride[axis] + part * layer.dilation[axis] - before
            beyond = start + (count - 1) * every - (size - 1)
            above, below = (max(0, -(-missing // every)) for missing in (-start, beyond))
            pads = (above, 0, below, 0)
            if limits.dma_fields_fit(count - above - below, 1, 0, pads) is not None:
                return False
    return True


def _keys(draft: Draft, layer: GemmLayer, target: Target) -> None:
    """What operands' base elements depend on: slots, and where a step's part of a load begins."""
    draft.table(
        "operand_slots",
        ["slots", "data_at", "weight_at"],
        ["slot_cases", "parts"],
        _slot_rows(target.limits.buffers),
        why="slots are for what is loaded more than once",
    )
    draft.select("part_keys", "parts", ["one", "trips_reduced"])
    draft.table(
        "operand_bases",
        ["weight_at", "data_at", "tile_order"],
        ["base_of_co", "base_of_batch"],
        _base_rows(layer),
        why="a part of what is loaded further out is found by the loops in between",
    )
    draft.constant("batches", layer.batches)
    draft.select("co_keys", "base_of_co", ["one", "trips_co"])
    draft.select("batch_keys", "base_of_batch", ["one", "batches"])
    draft.select("pixel_keys", "data_at", ["one", "one", "row_tiles", "trips_oh_ow"])


def _base_rows(layer: GemmLayer) -> Iterator[tuple[int, ...]]:
    """(weight_at, data_at, tile_order, do their bases depend on tiles of co, and on the batch)."""
    places = product(range(len(WEIGHT_AT)), range(len(DATA_AT)), enumerate(TILE_ORDERS))
    for weight, data, (order, axes) in places:
        all_weights = WEIGHT_AT[weight] == "once"
        inside = axes.index("co") > min(map(axes.index, ("oh", "ow")))
        blocks = layer.depthwise and (data == ONCE or (data == ROW and inside))
        batch = data == ONCE or (all_weights and layer.own_weights)
        yield weight, data, order, int(all_weights or blocks), int(batch)


def _slot_rows(most: int) -> Iterator[tuple[int, ...]]:
    """(slots, data_at, weight_at, cases of both slots, is a step's part somewhere in a load)."""
    places = product(range(1, most + 1), enumerate(DATA_AT), enumerate(WEIGHT_AT))
    for slots, (data, data_at), (weight, weight_at) in places:
        together = data_at == weight_at == "step"
        loaded_again = [place for place in (data_at, weight_at) if place != "once"]
        cases = slots if together else slots ** len(loaded_again)
        if slots == 1 or loaded_again:
            yield (slots, data, weight, cases, int(not together))


def _trips_down_to(axis: str, order: tuple[str, ...]) -> str:
    """The variable that counts how often a loop's body runs: trips of it and the loops around."""
    around = order[: order.index(axis) + 1]
    return "trips_" + "_".join(name for name in ("co", "oh", "ow") if name in around)


def _whole(layer: GemmLayer, axis: int) -> tuple[int, int]:
    return layer.extents[("oh", "ow")[axis]], layer.extents[("kh", "kw")[axis]]


def _choices(draft: Draft, axis: str) -> tuple[int, ...]:
    return draft.domain(f"tile_{axis}")
