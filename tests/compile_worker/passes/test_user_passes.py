"""Passes of a user's: they go in by name, run in their place, and are verified."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.kernels.nests import EXAMPLES, SIM, nest
from kit.recipes import RECIPES
from tilefarm.artifact import Artifact, BuildFailure, CompileJob
from tilefarm.target import Target
from tilefarm.trace import Trace

from compile_worker.compiler import compile_kernel
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import For, LoopKind
from compile_worker.ir.verify import Stage
from compile_worker.ir.visit import find
from compile_worker.lowering import lower, with_pass
from compile_worker.machines.known import MACHINES
from compile_worker.pipeline import Pass, PassError

CPU = MACHINES["cpu"].passes


def same(func: Func, target: Target) -> Func:
    return func


def no_inputs(func: Func, target: Target) -> Func:
    """Breaks the rule that buffers are declared."""
    return Func(func.name, func.params[:-1], func.body, func.attrs)


def nothing_at_all(func: Func, target: Target) -> Any:
    return None


@pytest.mark.parametrize("after", ["scheduled", *(step.name for step in CPU)])
def test_a_pass_runs_right_after_the_one_that_it_names(after: str) -> None:
    names = ["scheduled", *(step.name for step in CPU)]
    stages = [Stage.SCHEDULED, *(step.leaves for step in CPU)]
    mine = Pass("mine", same, stages[names.index(after)])
    seen = ["scheduled"]
    lower(
        nest("add"),
        SIM,
        machines=with_pass(MACHINES, mine, after=after),
        watch=lambda name, _: seen.append(name),
    )
    assert seen == [*names[: names.index(after) + 1], "mine", *names[names.index(after) + 1 :]]


def test_passes_of_a_user_are_verified_and_ours_stay_as_fast() -> None:
    machines = with_pass(MACHINES, Pass("mine", no_inputs, Stage.FLAT), after="flatten")
    assert [step.name for step in machines["cpu"].passes if step.is_verified] == ["mine"]
    with pytest.raises(PassError, match="pass mine breaks a rule of the stage flat: buffers are"):
        lower(nest("add"), SIM, machines=machines)


def test_what_is_no_function_is_told() -> None:
    machines = with_pass(MACHINES, Pass("mine", nothing_at_all, Stage.FLAT), after="flatten")
    with pytest.raises(PassError, match="pass mine gives NoneType, not a function"):
        lower(nest("add"), SIM, machines=machines)


def test_a_compile_with_a_broken_pass_is_a_typed_failure() -> None:
    machines = with_pass(MACHINES, Pass("mine", no_inputs, Stage.FLAT), after="flatten")
    job = CompileJob(workload=EXAMPLES["add"], trace=Trace(), target=SIM)
    made = compile_kernel(job, machines=machines)
    assert isinstance(made, BuildFailure)
    assert made.stage == "PassError"


MISPLACED: dict[str, tuple[Callable[[], object], str]] = {
    "unknown": (
        lambda: with_pass(MACHINES, Pass("mine", same, Stage.FLAT), after="flaten"),
        "there is no pass 'flaten' to go behind\n  try: one of scheduled, inline_stages, ",
    ),
    "taken": (
        lambda: with_pass(MACHINES, Pass("flatten", same, Stage.FLAT), after="flatten"),
        "there already is a pass 'flatten'\n  try: give it another name",
    ),
    "other stage": (
        lambda: with_pass(MACHINES, Pass("mine", same, Stage.FLAT), after="lower_gemm"),
        "pass mine leaves FLAT, behind lower_gemm it cannot\n  try: let it leave DECOMPOSED",
    ),
}


@pytest.mark.parametrize("case", MISPLACED)
def test_a_pass_that_cannot_go_there_is_told_what_can(case: str) -> None:
    add, why = MISPLACED[case]
    with pytest.raises(PassError) as refused:
        add()
    assert str(refused.value).startswith(why)


def test_the_example_of_the_readme_does_what_it_says(tmp_path: Path) -> None:
    names = RECIPES["compile_worker: pass"].run(tmp_path)
    kinds: dict[str, set[LoopKind]] = {}

    def watch(name: str, func: Func) -> None:
        kinds[name] = {loop.kind for loop in find(func, For) if loop.extent <= 4}

    job = CompileJob(workload=EXAMPLES["max_pool2d"], trace=Trace(), target=SIM)
    assert isinstance(compile_kernel(job, machines=names["machines"], watch=watch), Artifact)
    assert LoopKind.SERIAL in kinds["flatten"]
    assert LoopKind.SERIAL not in kinds["write_out_short_loops"]
