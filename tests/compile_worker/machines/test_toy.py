"""A machine that the compiler never heard of: a dense layer and an addition run on it."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest
from kit.nests import EXAMPLES, SIM, dense, inputs_of, with_epilogue
from kit.toy_machine import TARGET, TOY, run
from tilefarm.artifact import Artifact, BuildFailure, CompileJob
from tilefarm.model import MachineModel
from tilefarm.target import Target
from tilefarm.trace import Argument, Step, Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_kernel
from compile_worker.ir.interpret import interpret
from compile_worker.lowering import MACHINES
from compile_worker.schedule import replay
from compile_worker.te import nest_of

ALL = MappingProxyType({**MACHINES, TOY.kind: TOY})
PROCESSOR = Target(name="alone", machine=MachineModel(kind="cpu"))
DENSE = with_epilogue(dense(3, 2, rows=2), bias=0, shift="")


def trace(*steps: tuple[str, tuple[Argument, ...]]) -> Trace:
    return Trace(tuple(Step(*step) for step in steps))


def on_chip(operands: tuple[str, ...], *stages: str) -> Trace:
    reads = [("cache_read", (name, "near")) for name in operands]
    return trace(*reads, *(("set_scope", (stage, "wide")) for stage in stages))


def then(first: Trace, *steps: tuple[str, tuple[Argument, ...]]) -> Trace:
    return Trace(first.steps + trace(*steps).steps)


WHOLE = on_chip(("data", "weight"), "dot", "lower", "upper")
BLOCKS = then(WHOLE, ("reorder", ("dot_co", "dot_n")), ("compute_at", ("weight_near", "dot_co")))
"""Weights of one block of channels at a time."""

ROWS = then(
    on_chip(("a", "b"), "sum", "lower", "upper"),
    *(("compute_at", (stage, "out_h")) for stage in ("upper", "lower", "sum", "a_near", "b_near")),
)
"""A row of the image at a time."""

KERNELS = {"dense": (DENSE, BLOCKS), "addition": (EXAMPLES["add_plain"], ROWS)}


def compiled(work: Workload, schedule: Trace) -> Artifact | BuildFailure:
    return compile_kernel(CompileJob(workload=work, trace=schedule, target=TARGET), machines=ALL)


@pytest.mark.parametrize("name", KERNELS)
def test_it_computes_what_the_nest_means(name: str) -> None:
    work, schedule = KERNELS[name]
    made = compiled(work, schedule)
    assert isinstance(made, Artifact), made
    arrays = {name: each % 9 - 4 for name, each in inputs_of(work).items()}
    wanted = interpret(nest_of(work, TARGET), arrays)["out"]
    out = np.zeros(wanted.size, wanted.dtype)
    run(made.code, {**{key: each.reshape(-1) for key, each in arrays.items()}, "out": out})
    np.testing.assert_array_equal(out, wanted.reshape(-1))
    assert len(set(out.tolist())) > 2
    assert dict(made.features)["instructions"] > 2


def test_its_memories_are_schedules_memories_there_and_nowhere_else() -> None:
    work, schedule = KERNELS["addition"]
    replay(schedule, nest_of(work, TARGET), TARGET)
    job = CompileJob(workload=work, trace=schedule, target=SIM)
    elsewhere = compile_kernel(job, machines=ALL)
    assert isinstance(elsewhere, BuildFailure)
    assert "there is no memory 'near'" in elsewhere.why


def test_what_has_no_room_is_refused_by_its_name() -> None:
    found = compiled(DENSE, WHOLE)
    assert isinstance(found, BuildFailure)
    assert (found.stage, found.constraint) == ("check_room", "near_room")
    assert "near, which has 1024" in found.why


def test_a_compiler_without_the_machine_says_so() -> None:
    work, schedule = KERNELS["addition"]
    found = compile_kernel(CompileJob(workload=work, trace=schedule, target=TARGET))
    assert isinstance(found, BuildFailure)
    assert found.why.startswith("no machine that this compiler knows has a memory 'near'")
    assert "try: one of acc, inp, wgt" in found.why


def test_a_target_without_an_accelerator_runs_everything_on_its_processor() -> None:
    work = EXAMPLES["conv2d"]
    alone = compile_kernel(CompileJob(workload=work, trace=Trace(), target=PROCESSOR))
    beside = compile_kernel(CompileJob(workload=work, trace=Trace(), target=SIM))
    assert isinstance(alone, Artifact)
    assert isinstance(beside, Artifact)
    assert alone.code == beside.code
