"""How many DMA instructions a schedule's copies take, and of how many rows they are.

A copy has two dimensions. What lies one behind the other in memory and on the chip is one of them
(`passes/lower_dma.py`): an image without padding whose columns or rows are all loaded goes on with
the next block of channels, weights of all input channels with the next output block, results of
whole rows with the next block. What has more dimensions is several copies.
"""

from __future__ import annotations

from itertools import product

from compile_worker.draft import Draft
from compile_worker.machines.vta import limits
from compile_worker.machines.vta.space.layer import GemmLayer
from compile_worker.machines.vta.space.loop_orders import TILE_ORDERS

_PART, _SKIPPING, _GOES_ON, _WHOLE = range(4)
"""The rows of a block that are copied: some, every n-th of some, those of which one or every n-th
go on with the next block, or all."""

_APART, _MANY_ROWS, _A_ROW_EACH, _ONE_ROW = range(4)
"""Blocks of pixels: a copy each; one copy for all, in which a block is many rows, or a row, or all
blocks are one."""

_ONE, _BLOCKS, _PAIRS = range(3)
"""Copies of a step's weights: one; one for each output block; or for each pair of blocks."""

_ALL, _CONTIGUOUS, _WINDOWS, _TAPS = range(4)
"""Rows of a step's weights: one; one for each output block, pair of blocks, or row of a window."""


def declare_copies(draft: Draft, layer: GemmLayer) -> None:
    """*_pieces, the copies of one load; *_copies, those of all loads and stores."""
    _weight_copies(draft, layer)
    if layer.flat:
        draft.constant("inp_pieces", 1)
    else:
        _image_copies(draft, layer)
    draft.prod("inp_copies", "inp_loads", "inp_pieces")
    _output_copies(draft, layer)


def declare_rows(draft: Draft, layer: GemmLayer) -> None:
    """inp_rows, wgt_rows: of one load; out_rows: of all stores."""
    _weight_rows(draft, layer)
    if layer.flat:
        draft.select("inp_step_rows", "many_ow", ["one", "tile_ci"])
        part = draft.select("inp_tile_rows", "many_ow", ["one", "all_ci"])
        draft.select("inp_rows", "data_at", ["inp_step_rows", part, part, "one"])
    else:
        every = layer.every(0, layer.extents["oh"], layer.extents["kh"])
        draft.constant("image_rows", (layer.padded(0) - 1) // every + 1)
        outer = [min("oh", "ow", key=order.index) for order in TILE_ORDERS]
        lines = ["ih_tile" if each == "oh" else "image_rows" for each in outer]
        line = draft.select("line_window_rows", "tile_order", lines)
        draft.select("inp_window_rows", "data_at", ["ih", "ih_tile", line, "image_rows"])
        rows = draft.prod("inp_block_rows", "inp_blocks", "inp_window_rows")
        draft.select("inp_rows", "image_joined", [rows, rows, "inp_blocks", "one"])
    if layer.scattered:
        draft.prod("out_rows", "out_copies")
        return
    rows_each = draft.prod("out_block_rows", "tile_co", "tile_oh")
    draft.select("out_tile_rows", "results_joined", [rows_each, rows_each, "tile_co", "one"])
    draft.prod("out_rows", "tiles", "out_tile_rows", coefficient=layer.epilogue.out_planes)


def _weight_rows(draft: Draft, layer: GemmLayer) -> None:
    if layer.flat and layer.own_weights:  # the inputs of all output blocks lie side by side
        draft.select("wgt_step_rows", "many_co", ["one", "tile_ci"])
        draft.select("wgt_tile_rows", "many_co", ["one", "all_ci"])
        draft.select("wgt_rows", "weight_at", ["wgt_step_rows", "wgt_tile_rows", "one"])
        return
    blocks, pairs = _weight_tiles(draft)
    taps = draft.prod("wgt_taps", pairs, "tile_kh")
    draft.select("wgt_step_rows", "weight_rows", ["one", blocks, pairs, taps])
    draft.select("wgt_rows", "weight_at", ["wgt_step_rows", "one", "one"])


def result_rows(layer: GemmLayer, co: int, oh: int, ow: int) -> int:
    """Rows of the store of one tile."""
    if layer.scattered:
        return co * oh
    joined = _joined(*_results(layer, oh, ow), near=True)
    return {_A_ROW_EACH: co, _ONE_ROW: 1}.get(joined, co * oh)


def _weight_copies(draft: Draft, layer: GemmLayer) -> None:
    draft.prod("tile_co_ci", "tile_co", "tile_ci")
    if layer.planes > 1:
        for name in ("tile_co", "tile_co_ci"):
            draft.prod(f"{name}_planes", name, coefficient=layer.planes)
    keys = ["many_ci", "many_kh", "many_kw", "long_ci", "long_kh"]
    draft.table(
        "weight_copies",
        keys,
        ["weights_joined", "weight_rows"],
        (
            (*flags, *_weight_copy(*flags, joins=layer.phase_count == 1))
            for flags in product((0, 1), repeat=len(keys))
        ),
        why="a part of the kernel window is not contiguous in memory",
    )
    draft.select("wgt_step_pieces", "weights_joined", ["one", *_weight_tiles(draft)])
    draft.select("wgt_pieces", "weight_at", ["wgt_step_pieces", "one", "one"])
    draft.prod("wgt_copies", "wgt_loads", "wgt_pieces")


def _weight_tiles(draft: Draft) -> tuple[str, str]:
    """What counts output blocks, and pairs of blocks, of a step's weights, in all planes."""
    planes = "_planes" if draft.has("tile_co_planes") else ""
    return f"tile_co{planes}", f"tile_co_ci{planes}"


def _weight_copy(
    part_ci: int, part_kh: int, part_kw: int, long_ci: int, long_kh: int, *, joins: bool
) -> tuple[int, int]:
    """In how many copies a step's weights are loaded, and in which rows.

    Args:
        joins: whether weights of all input channels go on with the next output block.
    """
    joins = joins and not part_ci
    if not (part_kh or part_kw):
        return _ONE, _ALL if joins else _CONTIGUOUS
    if not (part_kw and long_kh):
        return (_BLOCKS if long_ci and not joins else _ONE), (_TAPS if part_kw else _WINDOWS)
    if not part_kh:
        return (_ONE if joins else _BLOCKS), _TAPS
    return (_PAIRS if long_ci else _BLOCKS), _TAPS


def _image_copies(draft: Draft, layer: GemmLayer) -> None:
    outer = [min("oh", "ow", key=order.index) for order in TILE_ORDERS]
    for axis, out, kernel, name in ((0, "oh", "kh", "rows"), (1, "ow", "kw", "columns")):
        state = _columns if axis else _rows
        whole = layer.extents[kernel]
        sizes = product(draft.domain(f"tile_{out}"), draft.domain(f"tile_{kernel}"))

        def under(tile: int, part: int, axis: int = axis) -> tuple[int, int]:
            return layer.window(axis, tile, part), layer.every(axis, tile, part)

        draft.table(
            f"image_{name}",
            [f"tile_{out}", f"tile_{kernel}"],
            [f"step_{name}", f"tile_{name}"],
            (
                (tile, part, state(layer, *under(tile, part)), state(layer, *under(tile, whole)))
                for tile, part in sizes
            ),
        )
        every = layer.every(axis, layer.extents[out], whole)
        all_of_it = (layer.padded(axis) - 1) // every + 1
        draft.constant(f"all_{name}", state(layer, all_of_it, every))
        by_order = [f"tile_{name}" if each == out else f"all_{name}" for each in outer]
        draft.select(f"line_{name}", "tile_order", by_order, domain=range(4))
        places = [f"{place}_{name}" for place in ("step", "tile", "line", "all")]
        draft.select(f"copied_{name}", "data_at", places, domain=range(4))
    near = limits.dma_fields_fit(1, 1, layer.rows * layer.columns, (0, 0, 0, 0)) is None
    draft.table(
        "image_copies",
        ["copied_rows", "copied_columns"],
        ["image_joined"],
        ((*both, _joined(*both, near=near)) for both in product(range(4), (0, 1))),
    )
    draft.constant("all_ci_images", layer.image_blocks * layer.batches)
    blocks = ["inp_step_blocks", "inp_tile_blocks", "inp_row_blocks", "all_ci_images"]
    draft.select("inp_blocks", "data_at", blocks)
    draft.constant("image_planes", layer.epilogue.data_planes)
    draft.select("inp_pieces", "image_joined", ["inp_blocks", *["image_planes"] * 3])


def _rows(layer: GemmLayer, count: int, every: int) -> int:
    """What of a block's rows that many are, every n-th of them."""
    padded = layer.pad[0] or layer.pad[2]
    if not padded and count * every == layer.rows:
        return _WHOLE if every == 1 else _GOES_ON
    if not padded and count == 1:
        return _GOES_ON
    return _PART if every == 1 else _SKIPPING


def _columns(layer: GemmLayer, count: int, every: int) -> int:
    """Whether that many columns are all, and rows go on from one to the next."""
    return int(not any(layer.pad) and count * every == layer.columns)


def _joined(rows: int, columns: int, *, near: bool) -> int:
    """How blocks are copied of which some rows, and all columns or not, are taken.

    Args:
        near: whether the step from one block to the next fits a copy's stride.
    """
    if rows == _WHOLE:
        return _ONE_ROW if columns else _MANY_ROWS
    if rows == _GOES_ON:
        return _MANY_ROWS if near else _APART
    return _A_ROW_EACH if rows == _PART and columns and near else _APART


def _output_copies(draft: Draft, layer: GemmLayer) -> None:
    planes = layer.epilogue.out_planes
    if layer.scattered:
        draft.prod("out_copies", "tiles", "tile_co", "tile_oh", coefficient=planes)
        return
    near = limits.dma_fields_fit(1, 1, layer.extents["oh"] * layer.extents["ow"], (0,) * 4) is None
    draft.table(
        "result_copies",
        ["tile_oh", "tile_ow"],
        ["results_joined"],
        (
            (oh, ow, _joined(*_results(layer, oh, ow), near=near))
            for oh, ow in product(draft.domain("tile_oh"), draft.domain("tile_ow"))
        ),
    )
    draft.select("out_pieces", "results_joined", ["tile_co", "one", "one", "one"])
    draft.prod("out_copies", "tiles", "out_pieces", coefficient=planes)


def _results(layer: GemmLayer, oh: int, ow: int) -> tuple[int, int]:
    """What of a block's rows is stored, and whether they go on from one to the next."""
    together = not layer.apart and layer.phase_count == 1
    if together and oh == layer.extents["oh"]:
        return _WHOLE, int(ow == layer.extents["ow"])
    return (_GOES_ON if oh == 1 else _PART), int(together and ow == layer.extents["ow"])
