"""Whatever primitives accept, in whatever order, the result of a function stays the same."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.nests import EXAMPLES, SIM, convolutions, denses, inputs_of
from tilefarm.errors import ScheduleError
from tilefarm.trace import Argument, Step, Trace
from tilefarm.workload import Workload

from compile_worker.ir.func import Func
from compile_worker.ir.interpret import interpret
from compile_worker.ir.stmt import Alloc, Block, For
from compile_worker.ir.visit import find
from compile_worker.schedule import PRIMITIVES, Schedule, replay
from compile_worker.te import nest_of

LENGTH = 6


def works() -> st.SearchStrategy[Workload]:
    small = [EXAMPLES[name] for name in ("affine", "softmax", "max_pool2d", "add")]
    return st.one_of(convolutions(), denses(), st.sampled_from(small))


def arguments(draw: st.DrawFn, func: Func, primitive: str) -> tuple[Argument, ...]:
    """Arguments of the right kinds, mostly names that there are."""
    loops = {loop.var.name: loop.extent for loop in find(func.body, For)}
    stages = [block.name for block in find(func.body, Block)]
    buffers = [*(a.buffer.name for a in find(func.body, Alloc)), *(p.name for p in func.params)]
    loop, stage = draw(st.sampled_from(list(loops))), draw(st.sampled_from(stages))
    buffer = draw(st.sampled_from(buffers))
    inside = [each.var.name for each in find(func.body, For) if each.var.name == loop]
    match primitive:
        case "split":
            factors = [d for d in range(1, loops[loop] + 1) if loops[loop] % d == 0]
            return (loop, draw(st.sampled_from(factors)))
        case "fuse" | "tile":
            outer = next(each for each in find(func.body, For) if each.var.name == loop)
            inner = outer.body.var.name if isinstance(outer.body, For) else loop
            return (loop, inner) if primitive == "fuse" else (loop, inner, 1, 1)
        case "reorder":
            nest = next(each for each in find(func.body, For) if each.var.name == loop)
            while isinstance(nest.body, For):
                nest = nest.body
                inside.append(nest.var.name)
            return tuple(draw(st.permutations(inside)))[:3]
        case "unroll" | "vectorize" | "parallel":
            return (loop,)
        case "compute_at":
            return (stage, loop)
        case "compute_inline":
            return (stage,)
        case "cache_read" | "cache_write":
            return (buffer, draw(st.sampled_from(["local", "dram"])))
        case "set_scope":
            return (buffer, draw(st.sampled_from(["local", "dram"])))
        case "double_buffer":
            return (buffer, draw(st.integers(1, 2)))
        case "annotate":
            return ("block", stage, "note", draw(st.integers(0, 3)))
        case _:
            return (stage, "gemm")


@st.composite
def schedules(draw: st.DrawFn) -> tuple[Workload, Schedule]:
    """A workload and a schedule of it, of steps that were accepted."""
    work = draw(works())
    schedule = Schedule(nest_of(work, SIM), SIM)
    for _ in range(LENGTH):
        primitive = draw(st.sampled_from(sorted(PRIMITIVES)))
        args = arguments(draw, schedule.func, primitive)
        with suppress(ScheduleError):
            schedule = PRIMITIVES[primitive](schedule, *args)
    return work, schedule


@settings(max_examples=60, deadline=None)
@given(schedules())
def test_result_stays_the_same(made: tuple[Workload, Schedule]) -> None:
    work, schedule = made
    inputs = inputs_of(work)
    before, after = interpret(nest_of(work, SIM), inputs), interpret(schedule.func, inputs)
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)


@settings(max_examples=30, deadline=None)
@given(schedules())
def test_trace_tells_it_all(made: tuple[Workload, Schedule]) -> None:
    work, schedule = made
    trace = Trace.from_json(schedule.trace.to_json())
    assert replay(trace, nest_of(work, SIM), SIM) is schedule.func
    assert all(isinstance(step, Step) for step in trace.steps)
