"""The timeline of one kernel: what load, compute and store did in every cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from tilefarm.measurement import TimelineEvent
from tilefarm.vta_isa import MODULES

from driver.report.summary import KernelTimeline
from driver.report.svg import AxisScale, box, drawing, label, legend, rulers

_COLOURS = {
    "load inp": "#d97706",
    "load wgt": "#b45309",
    "load acc": "#a3a30d",
    "load uop": "#9ca3af",
    "gemm": "#2563eb",
    "alu": "#0891b2",
    "store": "#059669",
    "other": "#d1d5db",
}
_LEFT, _RIGHT, _TOP, _LANE = 80.0, 905.0, 34.0, 44.0
_MOST_BARS = 6000


def timeline_chart(timeline: KernelTimeline) -> str:
    """A lane a module; bars closer than a pixel are merged, so any kernel can be drawn."""
    bottom = _TOP + _LANE * len(MODULES)
    x = AxisScale(0, timeline.cycles, _LEFT, _RIGHT)
    parts = [*legend(_COLOURS.items(), _LEFT, apart=96), *rulers(x, _TOP, bottom)]
    parts.append(label(_RIGHT, bottom + 34, "cycles", text_anchor="end", class_="name"))
    for row, module in enumerate(MODULES):
        y = _TOP + _LANE * row
        events = [e for e in timeline.events if e.module == module]
        parts.append(label(_LEFT - 8, y + 26, module, text_anchor="end", class_="tick"))
        parts.append(box(_LEFT, y + 5, _RIGHT - _LEFT, _LANE - 10, "#f3f4f6"))
        for kind, begin, end, count in drawable(events, timeline.cycles / (_MOST_BARS / 3)):
            tip = f"{kind}, {count} instruction{'s'[: count > 1]}, cycles {begin} to {end}"
            width = max(x(end) - x(begin), 0.3)
            parts.append(box(x(begin), y + 5, width, _LANE - 10, _COLOURS[kind], tip))
        busy = sum(e.end_cycle - e.begin_cycle for e in events)
        share = f"{100 * busy / max(timeline.cycles, 1):.0f} % busy"
        parts.append(label(_RIGHT + 8, y + 26, share, class_="tick"))
    return drawing(1000, bottom + 40, *parts, words="Load, compute and store over cycles")


def drawable(events: Sequence[TimelineEvent], cycles: float) -> Iterator[tuple[str, int, int, int]]:
    """Bars as of `merged`; those that begin within so many cycles are one, of the busiest kind.

    However kinds alternate, there is at most one bar for each so many cycles.
    """
    taken: list[tuple[str, int, int, int]] = []
    for bar in merged(events, cycles):
        if taken and bar[1] - taken[0][1] >= cycles:
            yield _one_bar(taken)
            taken = []
        taken.append(bar)
    if taken:
        yield _one_bar(taken)


def _one_bar(bars: Sequence[tuple[str, int, int, int]]) -> tuple[str, int, int, int]:
    """Bars as one, of the kind that has the most cycles."""
    busy: Counter[str] = Counter()
    for kind, begin, end, _ in bars:
        busy[kind] += end - begin
    (kind, _), *_ = busy.most_common(1)
    return kind, bars[0][1], max(bar[2] for bar in bars), sum(bar[3] for bar in bars)


def merged(
    events: Sequence[TimelineEvent], gap_cycles: float
) -> Iterator[tuple[str, int, int, int]]:
    """Runs of one kind of instruction with gaps below `gap_cycles`: (kind, begin, end, count)."""
    ordered = sorted(events, key=lambda e: e.begin_cycle)
    for kind, run in groupby(ordered, key=lambda e: instruction_kind(e.name)):
        begin, end, count = -1, -1, 0
        for event in run:
            if count and event.begin_cycle - end > gap_cycles:
                yield kind, begin, end, count
                count = 0
            begin = event.begin_cycle if not count else begin
            end, count = event.end_cycle, count + 1
        yield kind, begin, end, count


def instruction_kind(name: str) -> str:
    """The colour group of an instruction's name, whatever its case and details."""
    lowered = name.lower().replace("_", " ")
    return next((kind for kind in _COLOURS if lowered.startswith(kind)), "other")
