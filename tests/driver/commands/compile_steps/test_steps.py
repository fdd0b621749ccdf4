"""Every step of a compile as text, by name; what it changed; where it stopped and why."""

from __future__ import annotations

import pytest
from kit.kernels.nests import SIM, conv2d, dense
from tilefarm.errors import InfraError, SettingsError, UserError
from tilefarm.target import Target
from tilefarm.trace import Step, Trace

from compile_worker.ir.func import Func
from compile_worker.ir.parser import parse
from compile_worker.ir.printer import show
from compile_worker.ir.verify import Stage
from compile_worker.lowering import with_pass
from compile_worker.machines.known import MACHINES
from compile_worker.pipeline import Pass
from compile_worker.space import generate
from driver.commands.compile_steps.steps import compiled, counted, difference, known_names

WORK = dense(4, 2)


def plain() -> Trace:
    made = generate(WORK, SIM)
    return made.trace(dict(made.space.default))


def test_there_is_a_text_after_every_step() -> None:
    made = compiled(WORK, plain(), SIM)
    assert made.refusal is None
    names = [each.name for each in made.shown]
    steps = [str(number) for number in range(1, len(plain().steps) + 1)]
    assert names == ["nest", *steps, *(each.name for each in MACHINES["vta"].passes), "llvm"]
    for each in made.shown[:-1]:
        assert show(parse(each.text)) == each.text
        assert each.caption
    assert "define" in made.after("llvm").text
    assert made.after("scheduled") == made.after(str(len(plain().steps)))
    assert [each.text for each in compiled(WORK, plain(), SIM).shown] == [
        each.text for each in made.shown
    ]


def test_a_change_is_a_diff_to_the_step_before() -> None:
    made = compiled(WORK, plain(), SIM)
    split = next(each for each in made.shown if each.caption.startswith("split"))
    change = made.change(split)
    more, less = counted(change)
    assert more > less > 0
    assert made.change(made.shown[0])
    assert difference("a\nb", "a\nc") == ["@@ -1,2 +1,2 @@", " a", "-b", "+c"]


def test_unknown_steps_are_answered_with_the_known_ones() -> None:
    made = compiled(WORK, plain(), SIM)
    with pytest.raises(SettingsError, match="--after lower_dmas: no such step") as caught:
        made.after("lower_dmas")
    assert "lower_dma," in caught.value.hint
    assert set(known_names()) >= {"nest", "scheduled", "lower_dma", "llvm", "stream"}


def test_a_compiler_that_breaks_is_a_fault_and_keeps_what_was_before() -> None:
    def breaks(func: Func, target: Target) -> Func:
        raise AssertionError(f"{func.name} on {target.name}")

    passes = with_pass(MACHINES, Pass("breaks", breaks, Stage.FLAT), after="flatten")
    made = compiled(WORK, plain(), SIM, passes)
    assert isinstance(made.refusal, InfraError)
    assert "the compiler breaks after flatten: AssertionError" in str(made.refusal)
    assert made.shown[-1].name == "flatten"


def test_a_host_that_would_reach_the_chip_is_no_fault_of_the_compiler() -> None:
    made = compiled(WORK, Trace((Step("set_scope", ("dot", "acc")),)), SIM)
    assert isinstance(made.refusal, UserError)
    assert "which cannot reach dot in acc" in str(made.refusal)


def test_a_schedule_that_is_too_much_is_no_fault_of_the_compiler() -> None:
    made = compiled(conv2d(8, 8, 56, 56), Trace((Step("set_scope", ("padded", "inp")),)), SIM)
    assert isinstance(made.refusal, UserError)
    assert "more than sim can do: check_memories: inp_sram: " in str(made.refusal)


def test_a_step_is_named_once() -> None:
    for step, why in {
        Step("split", ()): "step 1, split(): takes loop: str, factor: int",
        Step("reorder", ("out_co", "out_co")): "step 1, reorder('out_co', 'out_co'): needs",
    }.items():
        assert str(compiled(WORK, Trace((step,)), SIM).refusal).startswith(why)


def test_a_refused_step_says_which_and_keeps_what_was_before() -> None:
    steps = plain().steps
    made = compiled(WORK, Trace((*steps[:2], Step("split", ("out_co", 3)))), SIM)
    assert "step 3, split('out_co', 3)" in str(made.refusal)
    assert [each.name for each in made.shown] == ["nest", "1", "2"]
    with pytest.raises(SettingsError, match="the compile stopped before: step 3"):
        made.after("llvm")
