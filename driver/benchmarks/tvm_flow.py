"""The old flow's schedules of ResNet-18's convolutions, and the same choices in our space.

TVM 0.14 with VTA and AutoTVM: `conv2d_packed` of vta/top/vta_conv2d.py, whose template was measured
in full with the exact cycle model of VTA's Chisel design (64-bit bus, bursts of 256 beats). Its
epilogue is a shift and two clips, without a bias.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from tilefarm.errors import DataError
from tilefarm.space import ESTIMATE, Point
from tilefarm.system_errors import unreadable

from compile_worker.space import Generated
from tuner.sampler import Sampler

SPATIAL: Final = ("co", "oh", "ow")
_TABLE: Final = "a CSV file with a row per point of the template; `--old` may be left out"
TEMPLATE_ORDER: Final = ("oh", "co", "ow")
"""The template's loops over output tiles, outermost first; it has no choice of them."""


@dataclass(frozen=True, slots=True)
class TemplatePoint:
    """One configuration of the template, and its cycles.

    `oc_nthread` and `h_nthread` are virtual threads: two tiles in flight, in memory of their own.
    """

    tile_h: int
    tile_w: int
    tile_ci: int
    tile_co: int
    oc_nthread: int
    h_nthread: int
    cycles: int

    @property
    def slots(self) -> int:
        """Tiles in flight."""
        return self.oc_nthread * self.h_nthread


@dataclass(frozen=True, slots=True, kw_only=True)
class OldFigures:
    """Cycles of a layer in the old flow.

    Attributes:
        best: the best of all valid points of the template.
        logged: with the schedule of TVM's log of measurements on a Pynq board.
        with_bias: the best when a bias is added, in a load and a register operation.
    """

    best: TemplatePoint
    logged: int
    with_bias: int


OLD_FLOW: Final[Mapping[str, OldFigures]] = {
    "C2": OldFigures(
        best=TemplatePoint(8, 56, 1, 2, 2, 1, 517_465), logged=517_465, with_bias=543_219
    ),
    "C3": OldFigures(
        best=TemplatePoint(7, 28, 1, 4, 1, 2, 262_544), logged=262_605, with_bias=275_655
    ),
    "C4": OldFigures(
        best=TemplatePoint(2, 28, 1, 8, 1, 2, 67_258), logged=81_857, with_bias=94_907
    ),
    "C5": OldFigures(
        best=TemplatePoint(14, 28, 1, 2, 2, 1, 485_782), logged=485_782, with_bias=498_728
    ),
    "C6": OldFigures(
        best=TemplatePoint(14, 14, 1, 4, 2, 1, 245_735), logged=245_735, with_bias=252_300
    ),
    "C7": OldFigures(
        best=TemplatePoint(7, 14, 1, 8, 2, 1, 49_059), logged=49_059, with_bias=55_725
    ),
    "C8": OldFigures(
        best=TemplatePoint(14, 14, 1, 4, 2, 1, 470_149), logged=470_149, with_bias=476_714
    ),
    "C9": OldFigures(
        best=TemplatePoint(7, 7, 1, 8, 2, 1, 239_178), logged=239_821, with_bias=243_331
    ),
    "C10": OldFigures(
        best=TemplatePoint(7, 7, 1, 16, 2, 1, 37_817), logged=37_817, with_bias=41_327
    ),
    "C11": OldFigures(
        best=TemplatePoint(7, 7, 1, 8, 2, 1, 465_126), logged=465_546, with_bias=469_044
    ),
}
"""By layer of ResNet-18; C1, the first one, the old flow leaves on the processor."""


def read_template(path: Path) -> dict[str, TemplatePoint]:
    """The best row of every layer in a table of the template's points.

    The columns are layer, tile_h, tile_w, tile_ci, tile_co, oc_nthread, h_nthread and cycles;
    others are ignored.

    Raises:
        DataError: the file cannot be read, or a row lacks a column or a number.
    """
    names = tuple(TemplatePoint.__dataclass_fields__)
    best: dict[str, TemplatePoint] = {}
    try:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                point = TemplatePoint(*(int(row[name]) for name in names))
                layer = row["layer"]
                if layer not in best or point.cycles < best[layer].cycles:
                    best[layer] = point
    except OSError as error:
        raise unreadable(path, error, _TABLE) from None
    except (KeyError, TypeError, ValueError) as error:
        wanted = ", ".join(("layer", *names))
        raise DataError(f"{path}: not a table of {wanted}: {error}", _TABLE) from None
    if not best:
        raise DataError(f"{path}: no rows", _TABLE)
    return best


def same_choices(
    template: TemplatePoint, made: Generated, extents: Mapping[str, int]
) -> list[Point]:
    """Points of our space with the choices of a template's point, the likely fastest first.

    The tiles are the template's, its threads the slots of our operands, its loop order ours, and
    operands are loaded for every step of the reduction, as the template does. What the template has
    no word for differs among the points: the order of micro-ops, what is held while a tile ends,
    and accumulator slots, at most as many as there are threads.

    Args:
        extents: those of the layer's axes.
    """
    sampler = Sampler(made.space)
    fixed = _fixed(template, made, extents)
    allowed = {
        at: np.asarray([[value in fixed[v.name] for value in v.domain]])
        for at, v in enumerate(made.space.variables)
        if v.name in fixed
    }
    points = [point for rows in sampler.search.scan(allowed) for point in sampler.points(rows)]
    return sorted(points, key=lambda point: point[ESTIMATE])


def _fixed(
    template: TemplatePoint, made: Generated, extents: Mapping[str, int]
) -> dict[str, set[int]]:
    """Values of the tunables that the template speaks of."""
    tiles = {
        "tile_oh": template.tile_h,
        "tile_ow": template.tile_w,
        "tile_ci": template.tile_ci,
        "tile_co": template.tile_co,
        "tile_kh": extents["kh"],
        "tile_kw": extents["kw"],
    }
    fixed = {name: {value} for name, value in tiles.items()}
    fixed |= {"slots": {template.slots}, "acc_slots": set(range(1, template.slots + 1))}
    many = {axis for axis in SPATIAL if tiles[f"tile_{axis}"] < extents[axis]}
    orders = _labels(made, "tile_order")
    wanted = [axis for axis in TEMPLATE_ORDER if axis in many]
    fixed["tile_order"] = {
        value
        for value, label in orders
        if [axis for axis in label.split() if axis in many] == wanted
    }
    if template.tile_ci < extents["ci"]:
        for name in ("data_at", "weight_at"):
            fixed[name] = {value for value, label in _labels(made, name) if label == "step"}
    return fixed


def _labels(made: Generated, name: str) -> Iterator[tuple[int, str]]:
    """(value, label) of a choice that is left."""
    variable = next(v for v in made.space.variables if v.name == name)
    yield from ((value, variable.labels[value]) for value in variable.domain)
