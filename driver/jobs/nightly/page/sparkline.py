"""The last nights in the space of a word: of a row, and of one of its layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from driver.jobs.nightly.words import cost_text, verdict_words
from driver.jobs.nightly.zoo_history import LAYER_NIGHTS, RowHistory
from driver.report.svg import AxisScale, drawing, element

_WIDTH, _HEIGHT, _EDGE = 120.0, 26.0, 3.0
_LEAST_SPAN: Final = 0.02
"""Changes below so large a share of the time are not drawn as if they were everything."""


def sparkline(history: RowHistory) -> str:
    """What the row took in its last nights; a dot where the last one stands."""
    samples = history.known[-LAYER_NIGHTS:]
    if not samples:
        return ""
    clock, judged = samples[-1].machine.clock, history.verdict(samples[-1].night)
    first, last = (cost_text(s.time.cost, clock) for s in (samples[0], samples[-1]))
    verdict = f", {verdict_words(judged.verdict)}" if judged else ""
    words = f"{history.row}: {first} to {last} in {len(samples)} nights{verdict}"
    kind = judged.verdict.value if judged else ""
    return _line([sample.time.cost for sample in samples], words, kind)


def layer_sparklines(history: RowHistory) -> dict[str, str]:
    """What each layer took in the row's last nights, as far as they have had it, by its name."""
    costs: dict[str, list[float]] = {}
    for sample in history.known[-LAYER_NIGHTS:]:
        for each in sample.time.layers:
            if each.cost:
                costs.setdefault(each.layer, []).append(each.cost)
    return {name: _layer_line(history, name, each) for name, each in costs.items()}


def _layer_line(history: RowHistory, layer: str, costs: Sequence[float]) -> str:
    clock = history.known[-1].machine.clock
    first, last = (cost_text(cost, clock) for cost in (costs[0], costs[-1]))
    return _line(costs, f"{layer}: {first} to {last} in {len(costs)} nights")


def _line(costs: Sequence[float], words: str, kind: str = "") -> str:
    x = AxisScale(0, max(1, len(costs) - 1), _EDGE, _WIDTH - _EDGE)
    y = cost_scale(costs, _HEIGHT - _EDGE, _EDGE)
    points = " ".join(f"{x(at):.1f},{y(cost):.1f}" for at, cost in enumerate(costs))
    last = len(costs) - 1
    dot = element("circle", cx=x(last), cy=y(costs[-1]), r=2.5, class_=f"dot {kind}".strip())
    line = element("polyline", points=points, class_="spark")
    return drawing(_WIDTH, _HEIGHT, line, dot, words=words)


def cost_scale(costs: Sequence[float], bottom: float, top: float) -> AxisScale:
    """From the least to the most of them, and a little more; wide enough for a straight line."""
    low, high = min(costs), max(costs)
    least = _LEAST_SPAN * high
    if high - low < least:
        low, high = (low + high - least) / 2, (low + high + least) / 2
    return AxisScale(low, high, bottom, top)
