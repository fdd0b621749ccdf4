"""The curve of accuracy against work in float: what each plan that was tried loses and costs."""

from __future__ import annotations

from collections.abc import Sequence

from driver.accuracy.float_layers import Plan
from driver.report.svg import Scale, axes, drawing, element, short

_WIDTH, _HEIGHT = 1100, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 1060, 30, 250
_GOOD, _BAD = "#059669", "#dc2626"


def plan_chart(plans: Sequence[Plan], limit: float) -> str:
    """A dot a plan; those that keep the limit, the dashed line, are green.

    Args:
        limit: points that may be lost.
    """
    worst = max(limit, *(plan.points for plan in plans))
    x = Scale(0, max(1, *(plan.macs for plan in plans)), _LEFT, _RIGHT)
    y = Scale(min(0.0, *(plan.points for plan in plans)), worst or 1.0, _BOTTOM, _TOP)
    frame = axes(
        x, y, x_words="MACs in float", y_words="points lost", y_text=lambda value: f"{value:g}"
    )
    line = element("line", x1=_LEFT, x2=_RIGHT, y1=y(limit), y2=y(limit), class_="bound")
    dots = "".join(
        element(
            "circle",
            element("title", f"{plan.points:.2f} points, {short(plan.macs)} MACs"),
            cx=x(plan.macs),
            cy=y(plan.points),
            r=5,
            fill=_GOOD if plan.points <= limit else _BAD,
        )
        for plan in plans
    )
    words = "points of accuracy lost by multiply-accumulates in float, for every plan tried"
    return drawing(_WIDTH, _HEIGHT, frame, line, dots, words=words)
