"""Search spaces: what may be chosen for a workload on a target, and what makes a choice valid."""

from compile_worker.errors import SpaceError
from compile_worker.machines.vta.space.bounds import ideal_cycles, lower_bound_cycles
from compile_worker.machines.vta.space.generated import Generated, generate, has_space
from compile_worker.machines.vta.space.rules import Outcome

__all__ = [
    "Generated",
    "Outcome",
    "SpaceError",
    "generate",
    "has_space",
    "ideal_cycles",
    "lower_bound_cycles",
]
