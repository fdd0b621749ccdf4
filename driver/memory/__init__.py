"""Where every intermediate tensor of a network lies, and when: problems, plans, and their proof."""

from driver.memory.bounds import peak_bound_nbytes
from driver.memory.planner import plan
from driver.memory.problem import AddressRange, Buffer, Op, Placement, Plan, Problem
from driver.memory.validate import GOOD, PlanVerdict, validate

__all__ = [
    "GOOD",
    "AddressRange",
    "Buffer",
    "Op",
    "Placement",
    "Plan",
    "PlanVerdict",
    "Problem",
    "peak_bound_nbytes",
    "plan",
    "validate",
]
