"""A machine that the compiler never heard of: a dense layer and an addition run on it."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from kit.kernels.nests import EXAMPLES, SIM, dense, inputs_of, with_epilogue
from kit.recipes import RECIPES
from tilefarm.artifact import Artifact, BuildFailure, CompileJob
from tilefarm.errors import TargetError
from tilefarm.model import MachineModel
from tilefarm.space import violations
from tilefarm.target import Target
from tilefarm.trace import Step, Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_kernel
from compile_worker.ir.interpret import interpret
from compile_worker.ir.parser import parse
from compile_worker.machines.known import MACHINES
from compile_worker.schedule import replay
from compile_worker.space import generate
from compile_worker.te import nest_of

from .toy_machine import TARGET, TOY, run

ALL = MappingProxyType({**MACHINES, TOY.kind: TOY})
PROCESSOR = Target(name="alone", machine=MachineModel(kind="cpu"))
DENSE = with_epilogue(dense(3, 2, rows=2), bias=0, shift="")


KERNELS = {"dense": DENSE, "addition": EXAMPLES["add_plain"]}


def compiled(work: Workload, schedule: Trace) -> Artifact | BuildFailure:
    return compile_kernel(CompileJob(workload=work, trace=schedule, target=TARGET), machines=ALL)


@pytest.mark.parametrize("whole", [0, 1])
@pytest.mark.parametrize("name", KERNELS)
def test_valid_points_compute_what_the_nest_means(name: str, whole: int) -> None:
    work = KERNELS[name]
    spaces = generate(work, TARGET, machines=ALL)
    made = compiled(work, spaces.trace({"whole": whole}))
    if broken := violations(spaces.space, spaces.completed({"whole": whole})):
        assert isinstance(made, BuildFailure)
        assert (made.stage, [made.constraint]) == ("check_memories", broken)
        return
    assert isinstance(made, Artifact), made
    arrays = {name: each % 9 - 4 for name, each in inputs_of(work).items()}
    wanted = interpret(nest_of(work, TARGET), arrays)["out"]
    out = np.zeros(wanted.size, wanted.dtype)
    run(made.code, {**{key: each.reshape(-1) for key, each in arrays.items()}, "out": out})
    np.testing.assert_array_equal(out, wanted.reshape(-1))
    assert len(set(out.tolist())) > 2
    assert dict(made.features)["instructions"] > 2


def test_its_memories_are_schedules_memories_there_and_nowhere_else() -> None:
    work = KERNELS["addition"]
    schedule = generate(work, TARGET, machines=ALL).trace({})
    replay(schedule, nest_of(work, TARGET), TARGET)
    job = CompileJob(workload=work, trace=schedule, target=SIM)
    elsewhere = compile_kernel(job, machines=ALL)
    assert isinstance(elsewhere, BuildFailure)
    assert "there is no memory 'near'" in elsewhere.why


def test_points_without_room_are_there_too() -> None:
    made = generate(DENSE, TARGET, machines=ALL)
    broken = [violations(made.space, made.completed({"whole": whole})) for whole in (0, 1)]
    assert broken == [[], ["near_sram"]]
    found = compiled(DENSE, made.trace({"whole": 1}))
    assert isinstance(found, BuildFailure)
    assert "near, which holds 1024" in found.why


def test_it_has_nothing_to_choose_for_other_operators() -> None:
    with pytest.raises(ValueError, match="softmax has no search space"):
        generate(EXAMPLES["softmax"], TARGET, machines=ALL)


def test_a_compiler_without_the_machine_says_so() -> None:
    work = KERNELS["addition"]
    schedule = generate(work, TARGET, machines=ALL).trace({})
    found = compile_kernel(CompileJob(workload=work, trace=schedule, target=TARGET))
    assert isinstance(found, BuildFailure)
    assert found.why.startswith("target toy is a machine of the kind 'toy', unknown to this")
    assert "try: one of cpu, vta" in found.why
    with pytest.raises(TargetError, match="of the kind 'toy', unknown"):
        generate(work, TARGET)


def test_a_target_without_an_accelerator_runs_everything_on_its_processor() -> None:
    work = EXAMPLES["conv2d"]
    alone = compile_kernel(CompileJob(workload=work, trace=Trace(), target=PROCESSOR))
    beside = compile_kernel(CompileJob(workload=work, trace=Trace(), target=SIM))
    assert isinstance(alone, Artifact)
    assert isinstance(beside, Artifact)
    assert b"VTA" in beside.code, "the names of what it calls"
    assert b"VTA" not in alone.code
    assert alone.features == beside.features


def test_the_machine_of_the_readme_compiles_what_fits_its_memory(tmp_path: Path) -> None:
    names = RECIPES["compile_worker: machine"].run(tmp_path)
    machines, target = names["machines"], names["target"]

    def near(work: Workload) -> Artifact | BuildFailure:
        copies = Trace(tuple(Step("cache_read", (each.name, "near")) for each in work.inputs))
        job = CompileJob(workload=work, trace=copies, target=target)
        return compile_kernel(job, machines=machines)

    made = near(KERNELS["addition"])
    assert isinstance(made, Artifact), made
    symbol, loops = made.code.decode().split(":\n", 1)
    assert (symbol,) == made.symbols
    arrays = inputs_of(KERNELS["addition"])
    wanted = interpret(nest_of(KERNELS["addition"], target), arrays)["out"]
    np.testing.assert_array_equal(interpret(parse(loops), arrays)["out"], wanted)
    refused = near(DENSE)
    assert isinstance(refused, BuildFailure)
    assert refused.constraint == "near_sram"
