"""One memory of a plan as address by time: every residency is a rectangle, no two may overlap."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from driver.memory import Memory, Reason, Residency
from driver.report.svg import (
    AxisScale,
    axes,
    box,
    colour,
    drawing,
    element,
    label,
    short,
    steps,
)

_LEFT, _RIGHT, _HEIGHT = 70.0, 980.0, 400.0


def memory_map(
    memory: Memory, residencies: Sequence[Residency], bound_nbytes: int, end_ticks: int
) -> str:
    """Ticks to the right, addresses upwards; a colour a buffer, dotted lines where it comes back.

    Grey is reserved. The thick line has the live bytes; no addresses can stay below the dashed one,
    the most of them. A full line is the capacity, where there is one.
    """
    if not residencies:
        return "<p>Nothing lies here.</p>"
    top = max(memory.capacity_nbytes, max(r.end_offset for r in residencies), 1)
    x = AxisScale(0, max(end_ticks, 1), _LEFT, _RIGHT)
    y = AxisScale(0, top, _HEIGHT - 50, 24)
    parts = [axes(x, y, x_words="ticks", y_words="bytes", y_text=short)]
    for offset, nbytes in memory.reserved:
        high, low = y(offset + nbytes), y(offset)
        tip = f"reserved: {nbytes} bytes at {offset}"
        parts.append(box(_LEFT, high, _RIGHT - _LEFT, low - high, "#d1d5db", tip))
    names = list(dict.fromkeys(r.buffer for r in residencies))
    for each in residencies:
        parts.append(_rectangle(each, x, y, names.index(each.buffer)))
    parts += _links(residencies, x, y)
    parts.append(
        element("path", d=steps(_live(residencies), x, y), class_="curve", stroke="#111827")
    )
    for nbytes, kind in ((bound_nbytes, "bound"), (memory.capacity_nbytes, "axis")):
        if nbytes:
            at = y(nbytes)
            parts.append(element("line", x1=_LEFT, x2=_RIGHT, y1=at, y2=at, class_=kind))
    words = f"Buffers in {memory.name} by address and time"
    return drawing(1000, _HEIGHT, *parts, words=words)


def _rectangle(each: Residency, x: AxisScale, y: AxisScale, number: int) -> str:
    left, right, top, bottom = x(each.begin), x(each.end), y(each.end_offset), y(each.offset)
    why = "a copy" if each.reason is Reason.SAVED else each.reason
    tip = (
        f"{each.buffer}, {why}: {each.nbytes} bytes at {each.offset}, "
        f"from {each.begin} to {each.end}"
    )
    shape = box(left, top, right - left, bottom - top, colour(number), tip, class_="tensor")
    if right - left > 30 and bottom - top > 14:
        words = each.buffer[: int((right - left) / 6.5)]
        shape += label(left + 5, top + 13, words, class_="on")
    return shape


def _links(residencies: Sequence[Residency], x: AxisScale, y: AxisScale) -> list[str]:
    """From where a buffer left to where it came back."""
    by_buffer: dict[str, list[Residency]] = {}
    for each in sorted(residencies, key=lambda r: r.begin):
        if each.reason is not Reason.SAVED:
            by_buffer.setdefault(each.buffer, []).append(each)

    def middle(each: Residency) -> float:
        return y(each.offset + each.nbytes / 2)

    return [
        element(
            "line", x1=x(a.end), y1=middle(a), x2=x(b.begin), y2=middle(b),
            stroke="#111827", stroke_dasharray="2 3",
        )
        for mine in by_buffer.values()
        for a, b in pairwise(mine)
    ]  # fmt: skip


def _live(residencies: Sequence[Residency]) -> list[tuple[float, float]]:
    changes: dict[int, int] = {0: 0}
    for each in residencies:
        changes[each.begin] = changes.get(each.begin, 0) + each.nbytes
        changes[each.end] = changes.get(each.end, 0) - each.nbytes
    live, points = 0, []
    for at in sorted(changes):
        live += changes[at]
        points.append((float(at), float(live)))
    return points
