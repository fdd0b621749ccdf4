"""A memory plan by engine and time: computations, loads, what leaves and comes back, stalls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from driver.memory.activities import Activity, ActivityKind
from driver.report.svg import AxisScale, box, drawing, element, label, legend, rulers

_COLOURS: Final[Mapping[ActivityKind, str]] = {
    ActivityKind.COMPUTE: "#2563eb",
    ActivityKind.MOVE: "#059669",
    ActivityKind.LOAD: "#0891b2",
    ActivityKind.SAVE: "#dc2626",
    ActivityKind.RELOAD: "#d97706",
    ActivityKind.REPEAT: "#7c3aed",
}
_LANE, _LEFT, _RIGHT, _TOP = 30.0, 110.0, 900.0, 34.0
_HATCH: Final = element(
    "defs",
    element(
        "pattern",
        element("rect", width=6, height=6, fill="#f9fafb"),
        element("line", x1=0, y1=0, x2=0, y2=6, stroke="#d1d5db", stroke_width=2),
        id="stall",
        width=6,
        height=6,
        patternUnits="userSpaceOnUse",
        patternTransform="rotate(45)",
    ),
)


def memory_gantt(done: Sequence[Activity], lanes: Sequence[str], end_ticks: int) -> str:
    """A lane an engine's instance; idle time between two activities is hatched, and what decides
    the end of the plan outlined. The share of time in which a lane is busy stands at its end.

    Args:
        end_ticks: where the axis ends, so that two plans can be compared.
    """
    if not done:
        return "<p>Nothing runs.</p>"
    bottom = _TOP + _LANE * len(lanes)
    x = AxisScale(0, max(end_ticks, 1), _LEFT, _RIGHT)
    parts = [_HATCH, *_key({each.kind for each in done}), *_grid(x, bottom)]
    for row, lane in enumerate(lanes):
        y = _TOP + _LANE * row
        mine = [each for each in done if each.lane == lane]
        parts.append(label(_LEFT - 8, y + 19, lane, text_anchor="end", class_="tick"))
        parts += [
            box(x(a.end), y + 4, x(b.begin) - x(a.end), _LANE - 8, "url(#stall)", _stalled(a, b))
            for a, b in pairwise(mine)
            if b.begin > a.end
        ]
        parts += [_bar(each, x, y) for each in mine]
        busy = sum(each.end - each.begin for each in mine) / max(end_ticks, 1)
        parts.append(label(_RIGHT + 8, y + 19, f"{100 * busy:.0f} % busy", class_="tick"))
    return drawing(1000, bottom + 40, *parts, words="What each engine does over time")


def _stalled(before: Activity, after: Activity) -> str:
    return f"idle for {after.begin - before.end} ticks, until {after.name} can begin"


def _bar(each: Activity, x: AxisScale, y: float) -> str:
    left, width = x(each.begin), max(x(each.end) - x(each.begin), 0.6)
    tip = f"{each.name}: {each.begin} to {each.end}, {each.end - each.begin} ticks"
    fill = _COLOURS[each.kind]
    if each.is_critical:
        tip += "; on the critical path"
        bar = box(
            left + 0.75, y + 4, max(width - 1.5, 0.6), _LANE - 8, fill, tip,
            stroke="#111827", stroke_width=1.5,
        )  # fmt: skip
    else:
        bar = box(left, y + 4, width, _LANE - 8, fill, tip, fill_opacity="0.7")
    if width > 40:
        bar += label(left + 5, y + 19, each.name[: int(width / 7)], class_="on")
    return bar


def _key(kinds: set[ActivityKind]) -> list[str]:
    shown = [(str(kind), fill) for kind, fill in _COLOURS.items() if kind in kinds]
    parts = list(legend([*shown, ("stall", "url(#stall)")], _LEFT))
    at = _LEFT + 90 * len(kinds)
    parts.append(box(at + 90, 8, 10, 10, "none", stroke="#111827", stroke_width=1.5))
    parts.append(label(at + 105, 17, "critical", class_="tick"))
    return parts


def _grid(x: AxisScale, bottom: float) -> list[str]:
    unit = label(_RIGHT, bottom + 34, "ticks", text_anchor="end", class_="name")
    return [*rulers(x, _TOP, bottom), unit]
