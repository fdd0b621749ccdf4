"""Some schedules of a workload, drawn from its space, on a simulator: all must give the bits."""

from __future__ import annotations

import numpy as np
from tilefarm.target import Target

from compile_worker.space import generate
from driver.benchmarks.sandboxed import Sandbox
from driver.benchmarks.workloads import workloads
from tuner.sampler import Sampler


def assert_bits_of_numpy(name: str, target: Target, *, points: int = 2) -> None:
    """The default schedule and random ones give what the reference in NumPy gives.

    Args:
        name: a workload of `driver.benchmarks.workloads`.
        target: with what it is simulated.
        points: how many schedules are drawn.
    """
    work = workloads(target)[name]
    made = generate(work, target)
    drawn = Sampler(made.space).sample(points, np.random.default_rng(1))
    with Sandbox(work, target, seed=0) as sandbox:
        for point in [dict(made.space.default), *drawn]:
            verdict = sandbox.verdict(made.trace(point))
            assert verdict.is_right, (verdict, point)
