"""When everything runs and where every buffer lies meanwhile: problems, plans, and their proof."""

from driver.memory.plan import (
    Bound,
    Infeasible,
    Plan,
    PlannedOp,
    PlannedTransfer,
    Reason,
    Residency,
    TransferKind,
)
from driver.memory.planner import Mode, plan
from driver.memory.problem import (
    Buffer,
    Engine,
    EngineKind,
    FirstContent,
    Memory,
    Op,
    Problem,
    Transfer,
)
from driver.memory.replay import Replay, replay, replayed, sampled_ticks
from driver.memory.validate import GOOD, PlanVerdict, validate

__all__ = [
    "GOOD",
    "Bound",
    "Buffer",
    "Engine",
    "EngineKind",
    "FirstContent",
    "Infeasible",
    "Memory",
    "Mode",
    "Op",
    "Plan",
    "PlanVerdict",
    "PlannedOp",
    "PlannedTransfer",
    "Problem",
    "Reason",
    "Replay",
    "Residency",
    "Transfer",
    "TransferKind",
    "plan",
    "replay",
    "replayed",
    "sampled_ticks",
    "validate",
]
