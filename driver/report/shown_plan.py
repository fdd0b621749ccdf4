"""Plans as pictures show them."""

from __future__ import annotations

from dataclasses import dataclass

from driver.memory import Plan, Problem
from driver.report.step_times import ComparedTimes


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """A plan under the name that people know it by."""

    name: str
    problem: Problem
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPlans:
    """How the steps of a network run on its engines, in nanoseconds.

    Attributes:
        alone: one sample, step after step, as its program does it.
        in_flight: several samples beside one another; None where one engine has all the work.
        times: predicted and measured ones, which these rest on.
    """

    alone: ShownPlan
    in_flight: ShownPlan | None
    times: ComparedTimes
