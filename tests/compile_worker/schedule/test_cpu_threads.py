"""Which loops threads share by default: long outermost ones of processors that have threads."""

from __future__ import annotations

import pytest
from tilefarm.artifact import CompileJob
from tilefarm.dtype import DType
from tilefarm.processors import processor, with_threads
from tilefarm.target import Host, Target
from tilefarm.trace import Step, Trace
from tilefarm.workload import TensorSpec, Workload

from compile_worker.codegen.parallel import parallel_loop
from compile_worker.compiler import lowered
from compile_worker.schedule.cpu_threads import GRAIN, shared
from compile_worker.te import nest_of

ONE = processor("mine", Host(), cores=4, caches={"l1": 1 << 15})
FOUR = with_threads(ONE, 4)
LONG = GRAIN // 8


def doubled(rows: int, columns: int) -> Workload:
    """x + x."""
    x, y, out = (TensorSpec(name, (rows, columns), DType.FLOAT32) for name in ("a", "b", "out"))
    return Workload("real_zip", (x, y), (out,), (("function", "add"),))


def steps(workload: Workload, target: Target, trace: Trace | None = None) -> tuple[Step, ...]:
    return shared(trace or Trace(), nest_of(workload, target), target).steps


def test_the_outermost_loop_of_a_long_kernel_is_shared() -> None:
    assert steps(doubled(8, LONG), FOUR) == (Step("parallel", ("out_i0",)),)
    assert steps(doubled(1, 8 * LONG), FOUR) == (Step("parallel", ("out_i1",)),)
    loop = parallel_loop(lowered(CompileJob(workload=doubled(8, LONG), trace=Trace(), target=FOUR)))
    assert loop is not None
    assert loop.extent == 8


@pytest.mark.parametrize(
    ("workload", "target"),
    [
        (doubled(8, LONG), ONE),
        (doubled(8, LONG - 1), FOUR),
        (doubled(3, 4 * LONG), FOUR),
    ],
    ids=["one thread", "short", "fewer iterations than threads"],
)
def test_nothing_is_shared(workload: Workload, target: Target) -> None:
    assert steps(workload, target) == ()
    job = CompileJob(workload=workload, trace=Trace(), target=target)
    assert parallel_loop(lowered(job)) is None


def test_what_is_parallel_already_stays_as_it_is() -> None:
    trace = Trace((Step("reorder", ("out_i1", "out_i0")), Step("parallel", ("out_i1",))))
    assert steps(doubled(8, LONG), FOUR, trace) == trace.steps


def test_a_loop_that_is_reduced_over_is_not_shared() -> None:
    x = TensorSpec("x", (1, 8 * LONG, 1), DType.FLOAT32)
    total = Workload(
        "real_reduce", (x,), (TensorSpec("out", (1, 1), DType.FLOAT32),), (("kind", "sum"),)
    )
    assert steps(total, FOUR) == ()
