"""What the old flow's schedules of ResNet-18's convolutions take.

TVM 0.14 with VTA and AutoTVM: `conv2d_packed` of vta/top/vta_conv2d.py, whose template was measured
in full with the exact cycle model of VTA's Chisel design (64-bit bus, bursts of 256 beats). Its
epilogue is a shift and two clips, without a bias.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.errors import DataError
from tilefarm.system_errors import unreadable

from driver.tune.autotvm.template import TemplateChoice

_TABLE: Final = "a CSV file with a row per point of the template; `--old` may be left out"


@dataclass(frozen=True, slots=True)
class TemplatePoint(TemplateChoice):
    """One configuration of the template, and its cycles."""

    cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OldFigures:
    """Cycles of a layer in the old flow.

    Attributes:
        best: the best of all valid points of the template.
        with_bias: the best when a bias is added, in a load and a register operation.
    """

    best: TemplatePoint
    with_bias: int


OLD_FLOW: Final[Mapping[str, OldFigures]] = {
    "C2": OldFigures(best=TemplatePoint(8, 56, 1, 2, 2, 1, 517_465), with_bias=543_219),
    "C3": OldFigures(best=TemplatePoint(7, 28, 1, 4, 1, 2, 262_544), with_bias=275_655),
    "C4": OldFigures(best=TemplatePoint(2, 28, 1, 8, 1, 2, 67_258), with_bias=94_907),
    "C5": OldFigures(best=TemplatePoint(14, 28, 1, 2, 2, 1, 485_782), with_bias=498_728),
    "C6": OldFigures(best=TemplatePoint(14, 14, 1, 4, 2, 1, 245_735), with_bias=252_300),
    "C7": OldFigures(best=TemplatePoint(7, 14, 1, 8, 2, 1, 49_059), with_bias=55_725),
    "C8": OldFigures(best=TemplatePoint(14, 14, 1, 4, 2, 1, 470_149), with_bias=476_714),
    "C9": OldFigures(best=TemplatePoint(7, 7, 1, 8, 2, 1, 239_178), with_bias=243_331),
    "C10": OldFigures(best=TemplatePoint(7, 7, 1, 16, 2, 1, 37_817), with_bias=41_327),
    "C11": OldFigures(best=TemplatePoint(7, 7, 1, 8, 2, 1, 465_126), with_bias=469_044),
}
"""By layer of ResNet-18; C1, the first one, the old flow leaves on the processor."""


def read_template(path: Path) -> dict[str, TemplatePoint]:
    """The best row of every layer in a table of the template's points; see `read_points`."""
    return {
        layer: min(points, key=lambda point: point.cycles)
        for layer, points in read_points(path).items()
    }


def read_points(path: Path) -> dict[str, list[TemplatePoint]]:
    """The rows of every layer in a table of the template's points.

    The columns are layer, tile_h, tile_w, tile_ci, tile_co, oc_nthread, h_nthread and cycles;
    others are ignored.

    Raises:
        DataError: the file cannot be read, or a row lacks a column or a number.
    """
    names = tuple(TemplatePoint.__dataclass_fields__)
    found: dict[str, list[TemplatePoint]] = {}
    try:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                point = TemplatePoint(*(int(row[name]) for name in names))
                found.setdefault(row["layer"], []).append(point)
    except OSError as error:
        raise unreadable(path, error, _TABLE) from None
    except (KeyError, TypeError, ValueError) as error:
        wanted = ", ".join(("layer", *names))
        raise DataError(f"{path}: not a table of {wanted}: {error}", _TABLE) from None
    if not found:
        raise DataError(f"{path}: no rows", _TABLE)
    return found
