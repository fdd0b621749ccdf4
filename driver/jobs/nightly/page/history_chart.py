"""A row's times through the nights: the band of their spread, commits, verdicts and steps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from tilefarm.measurement import DeviceClock
from tilefarm.printable import page_text as escape

from driver.jobs.nightly.page.sparkline import cost_scale
from driver.jobs.nightly.records import Pass, Sample, Verdict
from driver.jobs.nightly.words import SIGNS, commit_text, cost_text, night_text, sample_text
from driver.jobs.nightly.zoo_history import RowHistory
from driver.report.svg import AxisScale, drawing, element, label

_WIDTH, _LEFT, _RIGHT = 1000.0, 96.0, 984.0
_HEIGHT, _TOP, _BOTTOM = 330.0, 26.0, 268.0
_COMMITS: Final = _BOTTOM + 8
_DATES: Final = _BOTTOM + 34
_MOST_DATES: Final = 8
_SHOWN: Final = frozenset(Verdict) - {Verdict.UNCHANGED, Verdict.INSUFFICIENT_HISTORY}


def history_chart(history: RowHistory) -> str:
    """The whole history as one picture; nights are as far apart as their dates."""
    samples = history.known
    if not samples:
        return "<p>Nothing was measured yet.</p>"
    found = [s for s in history.samples if s.part is Pass.FOUND]
    costs = [c for s in (*samples, *found) for c in (s.time.low, s.time.cost, s.time.high)]
    times = [_seconds(sample) for sample in samples]
    x = AxisScale(min(times), max(max(times), min(times) + 1), _LEFT, _RIGHT)
    y = cost_scale(costs, _BOTTOM, _TOP)
    parts = [
        *_grid(y, samples[-1].machine.clock),
        *_dates(x, samples),
        _band(x, y, samples),
        _line(x, y, samples),
        *_commits(x, samples),
        *_steps(x, history, samples),
        *(_mark(x, y, history, sample) for sample in samples),
        *(_found(x, y, sample) for sample in found),
    ]
    return drawing(_WIDTH, _HEIGHT, *parts, words=f"{history.row}, night by night")


def _seconds(sample: Sample) -> float:
    return sample.time.ended


def _grid(y: AxisScale, clock: DeviceClock) -> Iterator[str]:
    for value in y.ticks():
        at = y(value)
        yield element("line", x1=_LEFT, x2=_RIGHT, y1=at, y2=at, class_="grid")
        yield label(_LEFT - 8, at + 4, cost_text(value, clock), text_anchor="end", class_="tick")


def _dates(x: AxisScale, samples: Sequence[Sample]) -> Iterator[str]:
    """A few of the nights, far enough apart to be read."""
    stride = math.ceil(len(samples) / _MOST_DATES)
    last = -math.inf
    for sample in samples[::stride]:
        at = x(_seconds(sample))
        if at - last >= 80:
            last = at
            day = datetime.fromtimestamp(_seconds(sample), UTC).date().isoformat()
            anchor = "end" if at > _RIGHT - 40 else "start" if at < _LEFT + 40 else "middle"
            yield label(at, _DATES, day, text_anchor=anchor, class_="tick")


def _band(x: AxisScale, y: AxisScale, samples: Sequence[Sample]) -> str:
    """From the tenth to the ninetieth percentile of each night."""
    if all(sample.time.low == sample.time.high for sample in samples):
        return ""
    over = [f"{x(_seconds(s)):.1f},{y(s.time.high):.1f}" for s in samples]
    under = [f"{x(_seconds(s)):.1f},{y(s.time.low):.1f}" for s in reversed(samples)]
    return element("polygon", points=" ".join([*over, *under]), class_="band")


def _line(x: AxisScale, y: AxisScale, samples: Sequence[Sample]) -> str:
    points = " ".join(f"{x(_seconds(s)):.1f},{y(s.time.cost):.1f}" for s in samples)
    return element("polyline", points=points, class_="line")


def _commits(x: AxisScale, samples: Sequence[Sample]) -> Iterator[str]:
    """A tick below the axis for each night with another code than the one before."""
    for before, now in pairwise(samples):
        if before.order.code != now.order.code:
            at = x(_seconds(now))
            tip = f"{commit_text(before)} → {commit_text(now)} ({night_text(now.night)})"
            yield element(
                "path", element("title", escape(tip)), d=f"M{at:.1f},{_COMMITS}v10", class_="commit"
            )
    yield label(_LEFT - 8, _COMMITS + 9, "commits", text_anchor="end", class_="name")


def _steps(x: AxisScale, history: RowHistory, samples: Sequence[Sample]) -> Iterator[str]:
    """Where times have changed for good."""
    for sample in samples:
        if sample.night in history.steps:
            at = x(_seconds(sample))
            tip = f"its times have changed for good since {night_text(sample.night)}"
            yield element(
                "path",
                element("title", escape(tip)),
                d=f"M{at:.1f},{_TOP}V{_BOTTOM}",
                class_="step",
            )


def _mark(x: AxisScale, y: AxisScale, history: RowHistory, sample: Sample) -> str:
    """The sign of a verdict that says something; elsewhere a point that the pointer finds."""
    at, height = x(_seconds(sample)), y(sample.time.cost)
    judged = history.verdict(sample.night)
    tip = f"{night_text(sample.night)}: {sample_text(sample)}, {commit_text(sample)}"
    if judged is None or judged.verdict not in _SHOWN:
        return element(
            "circle", element("title", escape(tip)), cx=at, cy=height, r=3, class_="point"
        )
    verdict = judged.verdict
    tip = f"{tip}; {verdict.value}: {judged.why}"
    return element(
        "text",
        element("title", escape(tip)),
        SIGNS[verdict],
        x=at,
        y=height - 7,
        text_anchor="middle",
        class_=f"sign {verdict.value}",
    )


def _found(x: AxisScale, y: AxisScale, sample: Sample) -> str:
    """What a night's search has found, adopted for the next one."""
    tip = f"{night_text(sample.night)}: found {sample_text(sample)}, adopted for the next night"
    return element(
        "circle",
        element("title", escape(tip)),
        cx=x(_seconds(sample)),
        cy=y(sample.time.cost),
        r=4,
        class_="found",
    )
