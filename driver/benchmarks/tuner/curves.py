"""Pictures of searches: the best so far of every proposer, its median and spread over seeds.

4x |-+            one chart a workload; 1x is the best known
   | +---+        line: median of the seeds; band: the middle 80 % of them
1x |_____+___ trials
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from tilefarm.printable import page_text as escape

from driver.benchmarks.tuner.conversations import Conversation, quantile
from driver.report.html import html_page
from driver.report.svg import AxisScale, axes, box, colour, drawing, element, label, steps

_WIDTH, _HEIGHT, _PLOT_RIGHT = 1000.0, 320.0, 640.0
_LEGEND_TOP, _LEGEND_ROW = 36.0, 20.0
_MOST: Final = 10.0
"""Times the best known: what is above is drawn at the edge."""
_LEAST: Final = 1.01
"""Up to here at least, so that a hair is not drawn as a mountain."""
_LINEAR: Final = 2.0
"""Up to here every percent is as high as any other."""
_BAND: Final = (0.1, 0.9)


@dataclass(frozen=True, slots=True)
class SearchCurve:
    """Searches of one workload by one proposer: the best so far after each trial, 1 is best known.

    Attributes:
        low, median, high: over the seeds, [trials]; infinite while nothing valid was found.
        seeds: how many searches there were.
    """

    name: str
    low: tuple[float, ...]
    median: tuple[float, ...]
    high: tuple[float, ...]
    seeds: int


def search_curve(name: str, searches: Sequence[Conversation], best_known: float) -> SearchCurve:
    """Of searches of which some may have ended sooner: these keep what they had."""
    trials = max(len(each.cycles) for each in searches)
    so_far = []
    for each in searches:
        best = [cycles / best_known for cycles in accumulate(each.cycles, min)]
        so_far.append(best + (best[-1:] or [math.inf]) * (trials - len(best)))
    after = [*zip(*so_far, strict=True)]
    low, high = ([quantile(values, share) for values in after] for share in _BAND)
    median = [quantile(values, 0.5) for values in after]
    return SearchCurve(name, tuple(low), tuple(median), tuple(high), len(searches))


def curves_page(
    curves: Mapping[str, Sequence[SearchCurve]], best_known: Mapping[str, float]
) -> str:
    """A page with a chart for each workload."""
    body = "<h1>Searches</h1><p class=sub>best so far by trials, as a multiple of the best known "
    body += "cycles; lines are medians over seeds, bands the middle 80 % of them</p>"
    for name, each in curves.items():
        body += f"<h2>{escape(name)}</h2><p class=sub>1x is {best_known[name]:,.0f} cycles</p>"
        body += curves_chart(each)
    return html_page("searches", body)


def curves_chart(curves: Sequence[SearchCurve]) -> str:
    """One step line and one band a proposer."""
    trials = max(len(each.median) for each in curves)
    seen = [value for each in curves for value in each.high if math.isfinite(value)]
    height = max(_HEIGHT, _LEGEND_TOP + _LEGEND_ROW * len(curves) + _LEGEND_ROW)
    x = AxisScale(1, max(trials, 2), 60, _PLOT_RIGHT)
    top = min(_MOST, max([_LEAST, *seen]))
    y = AxisScale(1, top, height - 60, 30, logarithmic=top > _LINEAR)
    words = "cycles, 1 = best known"
    parts = [axes(x, y, x_words="trials", y_words=words, y_text=lambda v: f"{v:.4g}x")]
    for at, each in enumerate(curves):
        parts += _band(each, colour(at), x, y)
    for at, each in enumerate(curves):
        parts += _line(each, colour(at), x, y)
        down = _LEGEND_TOP + _LEGEND_ROW * at
        parts.append(box(_PLOT_RIGHT + 18, down - 8, 10, 10, colour(at)))
        parts.append(label(_PLOT_RIGHT + 34, down + 1, _words(each), class_="tick"))
    return drawing(_WIDTH, height, *parts, words="Best cycles so far by trial, per proposer")


def _words(curve: SearchCurve) -> str:
    last = curve.median[-1]
    found = f"{last:.3f}x" if math.isfinite(last) else "nothing"
    return f"{curve.name}: {found} ({curve.seeds} seed{'s' * (curve.seeds != 1)})"


def _inside(values: Sequence[float], y: AxisScale) -> list[tuple[float, float]]:
    """Trials and values from the first finite one on, none beyond the scale."""
    return [(float(at), min(v, y.high)) for at, v in enumerate(values, 1) if math.isfinite(v)]


def _line(curve: SearchCurve, stroke: str, x: AxisScale, y: AxisScale) -> Iterator[str]:
    if points := _inside(curve.median, y):
        tip = element("title", escape(_words(curve)))
        yield element("path", tip, d=steps(points, x, y), stroke=stroke, class_="curve")


def _band(curve: SearchCurve, fill: str, x: AxisScale, y: AxisScale) -> Iterator[str]:
    """From the low to the high, where both are known."""
    high = _inside(curve.high, y)
    if not high:
        return
    low = _inside(curve.low, y)[-len(high) :]
    edge = list(_corners(high, x, y)) + list(_corners(low, x, y))[::-1]
    outline = "M" + "L".join(f"{across:g},{down:g}" for across, down in edge) + "Z"
    yield element("path", d=outline, fill=fill, fill_opacity=0.12, stroke="none")


def _corners(
    points: Sequence[tuple[float, float]], x: AxisScale, y: AxisScale
) -> Iterator[tuple[float, float]]:
    """Of a step line in pixels, held to the scale's end."""
    for (at, value), until in zip(points, [*(at for at, _ in points[1:]), x.high], strict=True):
        yield x(at), y(value)
        yield x(until), y(value)
