"""The curve of accuracy against cycles: what each plan that was tried loses and costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilefarm.printable import page_text as escape

from driver.network import CYCLES_ARE, RemedyPlan
from driver.report.svg import AxisScale, axes, drawing, element, short, steps

_WIDTH, _HEIGHT = 1100, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 1060, 30, 250
_GOOD, _BAD, _CURVE = "#059669", "#dc2626", "#6b7280"


def plan_chart(plans: Sequence[RemedyPlan], limit: float) -> str:
    """A dot a plan; those that keep the limit, the dashed line, are green.

    The step line is the least that is lost for so many cycles. Cycles are measured or estimated, as
    the table says.

    Args:
        limit: points that may be lost.
    """
    known = [plan for plan in plans if math.isfinite(plan.points)]
    worst = max([limit, *(plan.points for plan in known)])
    x = AxisScale(0, max([1, *(plan.cycles for plan in known)]), _LEFT, _RIGHT)
    y = AxisScale(min([0.0, *(plan.points for plan in known)]), worst or 1.0, _BOTTOM, _TOP)
    frame = axes(x, y, x_words="cycles", y_words="points lost", y_text=lambda value: f"{value:g}")
    front = [(float(plan.cycles), plan.points) for plan in frontier(known)]
    curve = element("path", d=steps(front, x, y), stroke=_CURVE, class_="curve")
    line = element("line", x1=_LEFT, x2=_RIGHT, y1=y(limit), y2=y(limit), class_="bound")
    dots = "".join(
        element(
            "circle",
            element("title", escape(_words(plan))),
            cx=x(plan.cycles),
            cy=y(plan.points),
            r=5,
            fill=_GOOD if plan.points <= limit else _BAD,
        )
        for plan in known
    )
    words = "points of accuracy lost by cycles, for every plan that was tried"
    return drawing(_WIDTH, _HEIGHT, frame, line, curve, dots, words=words)


def frontier(plans: Sequence[RemedyPlan]) -> list[RemedyPlan]:
    """Those that no plan beats with as few cycles, the cheapest first."""
    found: list[RemedyPlan] = []
    for plan in sorted(plans, key=lambda plan: (plan.cycles, plan.points)):
        if not found or plan.points < found[-1].points:
            found.append(plan)
    return found


def _words(plan: RemedyPlan) -> str:
    return (
        f"{plan.points:.2f} points, {short(plan.cycles)} cycles ({CYCLES_ARE[plan.basis]}):"
        f" {plan.words()}"
    )
