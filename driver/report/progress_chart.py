"""Best-so-far curves: how far below its untuned schedule each workload got, trial by trial."""

from __future__ import annotations

from collections.abc import Iterator

from tilefarm.printable import page_text as escape

from driver.report.summary import RunSummary, TrialRow, WorkloadRow
from driver.report.svg import AxisScale, axes, box, colour, drawing, element, label, short, steps

_WIDTH, _PLOT_RIGHT, _LEAST_HEIGHT = 1000.0, 650.0, 340.0
_LEGEND_TOP, _LEGEND_ROW = 40.0, 20.0


def progress_chart(summary: RunSummary) -> str:
    """One step line a workload: best time so far as a share of the untuned schedule's.

    The horizontal axis counts all trials of the network; ticks at the bottom are failures. The
    chart is as high as its legend needs.
    """
    curves = [(w, list(_curve(w, summary.trials))) for w in summary.workloads]
    curves = [(w, points) for w, points in curves if points]
    if not curves:
        return "<p>No trial has ended well yet.</p>"
    height = max(_LEAST_HEIGHT, _LEGEND_TOP + _LEGEND_ROW * len(curves))
    lowest = min(points[-1][1] for _, points in curves)
    highest = max(value for _, points in curves for _, value in points)
    x = AxisScale(0, max(t.number for t in summary.trials), 60, _PLOT_RIGHT)
    y = AxisScale(lowest * 0.85, highest * 1.15, height - 60, 30, logarithmic=True)
    parts = [axes(x, y, x_words="trials", y_words="time, 1 = untuned schedule", y_text=short)]
    for index, (workload, points) in enumerate(curves):
        tip = f"{workload.name}: {short(1 / points[-1][1])}x faster than its untuned schedule"
        parts.append(
            element(
                "path",
                element("title", escape(tip)),
                d=steps(points, x, y),
                stroke=colour(index),
                class_="curve",
            )
        )
    parts += [_failure(t, x, height) for t in summary.trials if t.status != "ok"]
    parts += _legend(curves)
    return drawing(_WIDTH, height, *parts, words="Best time so far by trial, per workload")


def _curve(workload: WorkloadRow, trials: tuple[TrialRow, ...]) -> Iterator[tuple[float, float]]:
    first = workload.default.number
    best: float | None = None
    for trial in trials:
        if trial.workload != workload.name or trial.cost is None:
            continue
        first = first or trial.cost
        if best is None or trial.cost < best:
            best = trial.cost
            yield trial.number, best / first


def _failure(trial: TrialRow, x: AxisScale, height: float) -> str:
    tip = f"trial {trial.number}: {trial.status} {trial.why}"
    return box(x(trial.number) - 1, height - 66, 2, 6, "#dc2626", tip)


def _legend(curves: list[tuple[WorkloadRow, list[tuple[float, float]]]]) -> list[str]:
    parts = []
    for index, (workload, points) in enumerate(curves):
        y = _LEGEND_TOP + _LEGEND_ROW * index
        words = f"{short(1 / points[-1][1])}x  {workload.name}"
        parts.append(box(_PLOT_RIGHT + 18, y - 8, 10, 10, colour(index)))
        parts.append(label(_PLOT_RIGHT + 34, y + 1, words, class_="tick"))
    return parts
