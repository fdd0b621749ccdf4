"""Predicted against measured: a dot a trial, on the diagonal where the estimate is right."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.printable import page_text as escape

from driver.report.summary import SpaceRow
from driver.report.svg import AxisScale, axes, colour, drawing, element, label, short
from driver.report.tables import count, table

_WIDTH, _HEIGHT, _RIGHT = 1000.0, 460.0, 650.0
_LEGEND_TOP, _LEGEND_ROW = 40.0, 20.0
_DECIDING: Final = 2
"""Variables that are named."""


def space_section(rows: Sequence[SpaceRow]) -> str:
    """The spaces as a table, and a chart of what was predicted where anything was."""
    words = (
        "<p class=sub>of all combinations of values few keep the constraints; of these the search"
        " measured some. A rank of 1 says that the estimate of the space orders its schedules as"
        " the device does. What decides: the share of the spread between trials that goes with the"
        " value of a variable</p>"
    )
    predicted = [row for row in rows if row.predictions]
    chart = _chart(predicted) if predicted else ""
    return words + _table(rows) + chart


def rank_correlation(predicted: Sequence[float], measured: Sequence[float]) -> float | None:
    """Spearman's; None where one of the two is the same everywhere, or there are less than three.

    1 where both have the same order, -1 where it is the opposite.
    """
    if len(predicted) < 3:
        return None
    one, other = _ranks(predicted), _ranks(measured)
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return float(np.corrcoef(one, other)[0, 1])


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """Places in order; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[inverse], np.float64)


def _table(rows: Sequence[SpaceRow]) -> str:
    head = ("workload", "combinations", "valid", "measured", "failed", "rank", "off", "at most")
    cells = []
    for row in rows:
        predicted = [each[1] for each in row.predictions]
        measured = [each[2] for each in row.predictions]
        rank = rank_correlation(predicted, measured)
        off = [abs(b / a - 1) for a, b in zip(predicted, measured, strict=True) if a]
        cells.append(
            (
                escape(row.workload),
                short(row.all_points),
                _valid(row),
                count(row.measured),
                count(row.failed) if row.failed else "",
                "" if rank is None else f"{rank:.3f}",
                f"{median(off):.1%}" if off else "",
                f"{max(off):.1%}" if off else "",
                _deciding(row),
            )
        )
    return table((*head, "what decides"), cells)


def _valid(row: SpaceRow) -> str:
    exactly = count(round(row.valid_points))
    return exactly if row.is_exact else f"about {short(row.valid_points)}"


def _deciding(row: SpaceRow) -> str:
    return ", ".join(f"{escape(name)} {share:.0%}" for name, share in row.deciding[:_DECIDING])


def _chart(rows: Sequence[SpaceRow]) -> str:
    values = [value for row in rows for _, *both in row.predictions for value in both if value > 0]
    low, high = min(values) / 1.3, max(values) * 1.3
    height = max(_HEIGHT, _LEGEND_TOP + _LEGEND_ROW * len(rows))
    x = AxisScale(low, high, 60, _RIGHT, logarithmic=True)
    y = AxisScale(low, high, height - 60, 30, logarithmic=True)
    parts = [
        axes(x, y, x_words="predicted cycles", y_words="measured cycles", y_text=short),
        element("line", x1=x(low), y1=y(low), x2=x(high), y2=y(high), class_="axis"),
    ]
    for index, row in enumerate(rows):
        parts += _dots(row, colour(index), x, y)
        at = _LEGEND_TOP + _LEGEND_ROW * index
        parts.append(element("circle", cx=_RIGHT + 23, cy=at - 3, r=4, fill=colour(index)))
        parts.append(label(_RIGHT + 34, at + 1, row.workload, class_="tick"))
    return drawing(_WIDTH, height, *parts, words="Measured by predicted cycles, a dot a trial")


def _dots(row: SpaceRow, fill: str, x: AxisScale, y: AxisScale) -> Iterator[str]:
    for number, predicted, measured in row.predictions:
        if not (0 < predicted < math.inf):
            continue
        tip = (
            f"{row.workload}, its trial {number}: {short(measured)} cycles, {short(predicted)}"
            " predicted"
        )
        yield element(
            "circle",
            element("title", escape(tip)),
            cx=x(predicted),
            cy=y(measured),
            r=3,
            fill=fill,
            fill_opacity=0.6,
        )
