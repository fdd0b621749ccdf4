"""The arena as address by time: every tensor is a rectangle, no two may overlap."""

from __future__ import annotations

from tilefarm.plural import plural

from driver.report.summary import ArenaPlan
from driver.report.svg import AxisScale, axes, box, colour, drawing, element, label, short

_LEFT, _RIGHT, _HEIGHT = 70.0, 980.0, 360.0


def arena_chart(plan: ArenaPlan) -> str:
    """Steps to the right, addresses upwards; no plan can stay below the dashed line."""
    if not plan.rects:
        return "<p>The network has no intermediate tensors.</p>"
    steps = max(len(plan.steps), 1)
    x = AxisScale(0, steps, _LEFT, _RIGHT)
    y = AxisScale(0, max(plan.nbytes, 1), _HEIGHT - 50, 24)
    parts = [axes(x, y, x_words="kernel calls", y_words="bytes", y_text=short)]
    for index, rect in enumerate(plan.rects):
        left, right = x(rect.begin_step), x(rect.end_step)
        top, bottom = y(rect.offset + rect.nbytes), y(rect.offset)
        tip = (
            f"{rect.name}: {plural(rect.nbytes, 'byte')} at {rect.offset}, "
            f"steps {rect.begin_step} to {rect.end_step}"
        )
        shape = box(left, top, right - left, bottom - top, colour(index), tip, class_="tensor")
        parts.append(shape)
        if right - left > 60 and bottom - top > 14:
            parts.append(
                label(left + 5, top + 13, rect.name[: int((right - left) / 6.5)], class_="on")
            )
    bound = y(plan.bound_nbytes)
    parts.append(element("line", x1=_LEFT, x2=_RIGHT, y1=bound, y2=bound, class_="bound"))
    return drawing(1000, _HEIGHT, *parts, words="Tensors in the arena by address and time")
