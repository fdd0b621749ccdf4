"""The compiler's own spaces are counted exactly, and their estimates decide nothing."""

from __future__ import annotations

import pytest
from tilefarm.space import ESTIMATE
from tilefarm.target import TARGETS

from compile_worker.space import generate
from driver.benchmarks.scripts import SCRIPTS
from driver.benchmarks.workloads import workloads
from driver.targets import usable_target
from tuner.deciding_constraints import deciding_constraints
from tuner.sampler import Sampler

SIM, CPU = TARGETS["sim"], usable_target("cpu:x86-64-v3")
WORKS = workloads(SIM)
_SMALL = (
    "C11",
    "D9",
    "conv prime",
    "dense wide",
    "matmul",
    "addition 28",
    "max pool",
    "mean of 2x2",
)
_SPACES = {
    **{name: (WORKS[name], SIM) for name in _SMALL},
    **{name: (SCRIPTS[name].workload, CPU) for name in ("smooth", "stencil")},
}


@pytest.mark.parametrize("name", _SPACES)
def test_the_count_is_that_of_all_points(name: str) -> None:
    sampler = Sampler(generate(*_SPACES[name]).space)
    assert sampler.counted is not None
    assert sampler.counted.count == sum(len(rows) for rows in sampler.scan())


@pytest.mark.parametrize("name", WORKS)
def test_an_estimate_decides_nothing(name: str) -> None:
    left = deciding_constraints(generate(WORKS[name], SIM).space).space
    assert ESTIMATE not in {v.name for v in left.variables}
    assert not any(
        c.name.startswith(("sum_late", "sum_plain", "sum_cycles")) for c in left.constraints
    )
