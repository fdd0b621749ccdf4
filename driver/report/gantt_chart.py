"""Who did what when: a lane per worker and device, so that idle time is visible."""

from __future__ import annotations

from dataclasses import replace

from driver.report.svg import AxisScale, box, drawing, element, label, legend, rulers
from driver.run_events import Span

_STEP = "#9ca3af"
_COLOURS = {
    "step": _STEP,
    "propose": "#7c3aed",
    "compile": "#2563eb",
    "transfer": "#d97706",
    "run": "#059669",
    "rerun": "#0e7490",
    "network": "#be185d",
}
_LONGEST_IDLE_SECONDS = 10.0
"""Longer than that nobody does anything only between sessions, which may be days."""
_SHOWN_IDLE_SECONDS = 1.0
_LANE, _LEFT, _RIGHT, _TOP = 24.0, 130.0, 905.0, 34.0


def gantt_chart(spans: tuple[Span, ...]) -> str:
    """One bar a span; the share of time in which a lane was busy stands at its end.

    Where nobody did anything for long, as between two sessions, a second stands for that time.
    """
    if not spans:
        return "<p>Nothing was compiled or measured.</p>"
    spans, seams = _closed_up(spans)
    lanes = _lanes(spans)
    end = max(s.end_seconds for s in spans)
    bottom = _TOP + _LANE * len(lanes)
    x = AxisScale(0, end, _LEFT, _RIGHT)
    parts = [*legend(_COLOURS.items(), _LEFT), *rulers(x, _TOP, bottom)]
    parts.append(label(_RIGHT, bottom + 34, "seconds", text_anchor="end", class_="name"))
    parts += [_seam(at, seconds, x, bottom) for at, seconds in seams]
    for row, lane in enumerate(lanes):
        y = _TOP + _LANE * row
        mine = [s for s in spans if s.lane == lane]
        parts.append(label(_LEFT - 8, y + 15, lane, text_anchor="end", class_="tick"))
        parts.append(box(_LEFT, y + 3, _RIGHT - _LEFT, _LANE - 6, "#f3f4f6"))
        parts += [_bar(s, x, y) for s in mine]
        busy = f"{100 * busy_seconds(mine) / end:.0f} % busy"
        parts.append(label(_RIGHT + 8, y + 15, busy, class_="tick"))
    return drawing(1000, bottom + 40, *parts, words="Busy spans of workers and devices over time")


def busy_seconds(spans: list[Span]) -> float:
    """Seconds covered by at least one of the spans of a lane."""
    total, reached = 0.0, 0.0
    for span in sorted(spans, key=lambda s: s.begin_seconds):
        total += max(0.0, span.end_seconds - max(reached, span.begin_seconds))
        reached = max(reached, span.end_seconds)
    return total


def _closed_up(
    spans: tuple[Span, ...],
) -> tuple[tuple[Span, ...], list[tuple[float, float]]]:
    """The spans without long idle times, and where how much was left out."""
    reached = removed = 0.0
    seams: list[tuple[float, float]] = []
    closed: list[Span] = []
    for span in sorted(spans, key=lambda s: s.begin_seconds):
        idle = span.begin_seconds - reached
        if idle > _LONGEST_IDLE_SECONDS:
            removed += idle - _SHOWN_IDLE_SECONDS
            seams.append((span.begin_seconds - removed - _SHOWN_IDLE_SECONDS / 2, idle))
        reached = max(reached, span.end_seconds)
        begin, end = span.begin_seconds - removed, span.end_seconds - removed
        closed.append(replace(span, begin_seconds=begin, end_seconds=end))
    return tuple(closed), seams


def _seam(at: float, seconds: float, x: AxisScale, bottom: float) -> str:
    tip = element("title", f"{seconds:.0f} s in which nobody did anything are left out")
    return element("line", tip, x1=x(at), x2=x(at), y1=_TOP, y2=bottom, class_="bound")


def _lanes(spans: tuple[Span, ...]) -> list[str]:
    """Driver, tuner, compile workers, devices: each group by name."""

    def order(lane: str) -> tuple[int, str]:
        first = lane.split(" ", 1)[0]
        known = ("driver", "tuner", "compile")
        return known.index(first) if first in known else len(known), lane

    return sorted({s.lane for s in spans}, key=order)


def _bar(span: Span, x: AxisScale, y: float) -> str:
    begin, end = x(span.begin_seconds), x(span.end_seconds)
    seconds = span.end_seconds - span.begin_seconds
    tip = f"{span.kind}: {span.label} ({seconds * 1000:.1f} ms at {span.begin_seconds:.2f} s)"
    return box(begin, y + 3, max(end - begin, 0.4), _LANE - 6, _COLOURS.get(span.kind, _STEP), tip)
