"""Search spaces: what may be chosen for a workload on a target, and what makes a choice valid."""

from compile_worker.space.bounds import ideal_cycles, lower_bound_cycles
from compile_worker.space.generated import Generated, generate, has_space

__all__ = ["Generated", "generate", "has_space", "ideal_cycles", "lower_bound_cycles"]
