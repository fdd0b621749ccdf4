"""Where every intermediate tensor of a network lies, and when: problems, plans, and their proof."""

from driver.memory.bounds import peak_bound_nbytes
from driver.memory.planner import plan
from driver.memory.problem import Buffer, Memory, Op, Placement, Plan, Problem
from driver.memory.validate import GOOD, Verdict, validate

__all__ = [
    "GOOD",
    "Buffer",
    "Memory",
    "Op",
    "Placement",
    "Plan",
    "Problem",
    "Verdict",
    "peak_bound_nbytes",
    "plan",
    "validate",
]
