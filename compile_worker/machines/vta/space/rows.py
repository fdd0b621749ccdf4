"""Rows of a schedule's copies, where a design takes time for each: inp_rows, wgt_rows, out_rows.

Rows that lie one behind the other in memory and on the chip are one: an image without padding whose
columns are all loaded, weights of all input channels, results of whole rows without a border.
"""

from __future__ import annotations

from itertools import product

from compile_worker.draft import Draft
from compile_worker.machines.vta.space.layer import GemmLayer


def declare_rows(draft: Draft, layer: GemmLayer) -> None:
    """How many rows all copies of each memory have."""
    _image_rows(draft, layer)
    whole = "tile_co_planes" if layer.planes > 1 else "tile_co"
    draft.select("wgt_copy_rows", "weight_at", [whole, "one", "one"])
    draft.prod("wgt_rows", "wgt_copies", "wgt_copy_rows")
    _output_rows(draft, layer)


def _image_rows(draft: Draft, layer: GemmLayer) -> None:
    if layer.flat:
        draft.prod("inp_rows", "inp_copies", "tile_ci")
        return
    whole = layer.window(0, layer.extents["oh"], layer.extents["kh"])
    draft.constant("image_rows", whole)
    draft.select("inp_window_rows", "data_at", ["ih", "ih_tile", "ih_tile", "image_rows"])
    draft.table(
        "inp_rows_joined",
        ["tile_ow", "tile_kw"],
        ["inp_joined"],
        (
            (tile, part, int(not any(layer.pad) and layer.window(1, tile, part) == layer.columns))
            for tile, part in product(draft.domain("tile_ow"), draft.domain("tile_kw"))
        ),
        why="rows that follow one another in memory are one",
    )
    draft.select("inp_copy_rows", "inp_joined", ["inp_window_rows", "one"])
    draft.prod("inp_rows", "inp_copies", "inp_copy_rows")


def _output_rows(draft: Draft, layer: GemmLayer) -> None:
    if layer.flat or layer.scattered:
        draft.prod("out_rows", "out_copies")
        return
    draft.table(
        "out_rows_joined",
        ["tile_oh", "tile_ow"],
        ["out_copy_rows"],
        (
            (rows, columns, 1 if columns == layer.extents["ow"] and not layer.apart else rows)
            for rows, columns in product(draft.domain("tile_oh"), draft.domain("tile_ow"))
        ),
        why="rows that follow one another in memory are one",
    )
    draft.prod("out_rows", "out_copies", "out_copy_rows")
