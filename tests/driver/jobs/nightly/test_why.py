"""Why two nights differ: layers, schedules, code, causes, commits; each only where it is so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from kit.built import needs_simulator
from kit.kernels.nests import SIM, dense
from kit.reports.nights import zoo_history
from kit.repositories import git
from tilefarm.artifact import PluginText
from tilefarm.trace import Step, Trace

from compile_worker.space import generate
from driver.jobs.nightly.records import ChosenSchedule, LayerSample, Sample
from driver.jobs.nightly.why import (
    Evidence,
    Measured,
    commits_between,
    evidence_of,
    explained,
)
from driver.network import forget_plugins

WORKLOAD = dense(ci=2, co=2)


def sample(costs: Mapping[str, float], at: int = 0) -> Sample:
    """Of a device that counts cycles (at 0) or has a clock (at 1); of each layer its cost."""
    made = zoo_history(1).rows[at].samples[0]
    layers = tuple(
        LayerSample(layer=name, workload=f"w_{name}", schedule="", cost=cost)
        for name, cost in costs.items()
    )
    share = sum(costs.values()) / made.time.cost
    time = replace(
        made.time,
        cost=share * made.time.cost,
        low=share * made.time.low,
        high=share * made.time.high,
        layers=layers,
    )
    return replace(made, time=time)


def chosen(*steps: Step) -> ChosenSchedule:
    return ChosenSchedule(workload=WORKLOAD, trace=Trace(steps), point=())


def default() -> ChosenSchedule:
    """The untuned schedule of the workload."""
    space = generate(WORKLOAD, SIM)
    point = dict(space.space.default)
    return ChosenSchedule(workload=WORKLOAD, trace=space.trace(point), point=())


def test_the_layers_that_moved_are_named_those_that_moved_most_first() -> None:
    before = sample({"a": 1000, "b": 2000, "c": 10, "same": 50_000})
    now = sample({"a": 1100, "b": 1000, "new": 500, "same": 50_010})
    lines = explained(Measured(sample=before), Measured(sample=now)).lines
    assert lines == (
        "b takes 1\u202f000 cycles less (-50.0 %)",
        "new is new: 500 cycles",
        "a takes 100 cycles more (+10.0 %)",
    )


def test_by_a_clock_a_layer_moves_only_beyond_the_spread() -> None:
    before = sample({"a": 1e-3, "b": 1e-3}, at=1)
    within = sample({"a": 1.005e-3, "b": 1e-3}, at=1)
    beyond = sample({"a": 1.1e-3, "b": 1e-3}, at=1)
    assert explained(Measured(sample=before), Measured(sample=within)).lines == ()
    assert explained(Measured(sample=before), Measured(sample=beyond)).lines == (
        "a takes 100 us more (+10.0 %)",
    )


def test_many_layers_are_a_few_and_the_rest_in_one() -> None:
    before = sample({f"l{n}": 1000 for n in range(9)})
    now = sample({f"l{n}": 1100 + n for n in range(9)})
    lines = explained(Measured(sample=before), Measured(sample=now)).lines
    assert len(lines) == 6
    assert lines[-1] == "4 other layers: +406 cycles"


def test_another_schedule_other_code_and_new_workloads_are_told_apart() -> None:
    one, other = chosen(Step("split", ("k", 4))), chosen(Step("split", ("k", 8)))
    name = one.workload.name
    costs = {"a": 1000.0}
    before, now = sample(costs), sample({"a": 2000.0})
    layers = [
        replace(
            each, time=replace(each.time, layers=(replace(each.time.layers[0], workload=name),))
        )
        for each in (before, now)
    ]
    old = Evidence(workload=name, lowered="for\n  x", causes=(("gemm", 1200), ("idle", 7)))
    new = Evidence(workload=name, lowered="for\n  y", causes=(("gemm", 10), ("token", 3000)))

    moved = explained(
        Measured(sample=layers[0], schedules={name: one}, evidence={name: old}),
        Measured(sample=layers[1], schedules={name: other}, evidence={name: new}),
    )
    assert "1 workload with another schedule" in moved.lines
    assert f"{name}, cycles by cause: token +3 000, gemm -1 190, idle -7" in moved.lines
    details = dict(moved.details)
    assert "4 -> 8" in details[f"{name}: schedule"]
    assert "-  x\n+  y" in details[f"{name}: lowered code"]

    code = explained(
        Measured(sample=layers[0], schedules={name: one}, evidence={name: old}),
        Measured(sample=layers[1], schedules={name: one}, evidence={name: new}),
    )
    assert "1 workload of the same schedule with other code" in code.lines
    assert f"{name}: schedule" not in dict(code.details)

    same = explained(
        Measured(sample=layers[0], schedules={name: one}, evidence={name: old}),
        Measured(sample=layers[1], schedules={name: one}, evidence={name: old}),
    )
    assert "the code of every kernel is what it was" in same.lines
    assert same.details == ()

    fresh = explained(Measured(sample=layers[0]), Measured(sample=layers[1], schedules={name: one}))
    assert f"1 workload that was not there: {name}" in fresh.lines


def test_evidence_is_kept_as_bytes() -> None:
    made = Evidence(workload="w", lowered="for", causes=(("gemm", 3),))
    assert Evidence.read(made.content) == made
    for content in (b"", b"[]", b"{}", b'{"workload":1,"lowered":"","causes":[]}'):
        with pytest.raises(ValueError, match=r"."):
            Evidence.read(content)


@needs_simulator
def test_evidence_of_a_schedule_is_its_code_and_its_cycles_by_cause() -> None:
    made = evidence_of(default(), SIM)
    assert "gemm" in made.lowered
    assert dict(made.causes)["gemm"] > 0
    assert evidence_of(default(), SIM, made) is made
    other = replace(made, lowered="of another night")
    assert evidence_of(default(), SIM, other) == made


def test_a_schedule_that_does_not_lower_any_more_is_no_surprise() -> None:
    made = evidence_of(chosen(Step("split", ("nothing", 4))), SIM)
    assert made.lowered == ""
    assert "there is no such loop" in made.why
    assert Evidence.read(made.content) == made


TIDY = PluginText(
    "passes.py",
    b"from compile_worker.plugins.custom_pass import custom_pass\n"
    b"@custom_pass(after='lower_gemm')\ndef tidied_by_night(func, target):\n    return func\n",
)


@needs_simulator
def test_a_kernel_with_passes_of_users_is_kept_as_any_other() -> None:
    plain = default()
    step = Step("lower_with", ("tidied_by_night", TIDY.digest.hex))
    mine = replace(plain, trace=Trace((*plain.trace.steps, step)))
    try:
        without = evidence_of(mine, SIM)
        assert (without.lowered, without.causes) == ("", ())
        assert "needs the pass tidied_by_night of the plugin" in without.why
        made = evidence_of(mine, SIM, plugins=(TIDY,))
        assert f"tidied_by_night@{TIDY.digest}" in made.lowered
        assert made.causes == evidence_of(plain, SIM).causes
        assert made.why == ""
    finally:
        forget_plugins()


def test_what_has_no_code_is_said_with_its_reason() -> None:
    schedules = {"w": default()}
    known, none = Evidence(workload="w", lowered="for"), Evidence(workload="w", lowered="", why="x")
    before, now = (
        Measured(sample=sample({"a": cost}), schedules=schedules, evidence={"w": each})
        for cost, each in ((1000.0, known), (2000.0, none))
    )
    told = explained(before, now)
    assert told.lines[1:] == ("no code of w is kept: x",)
    assert told.details == ()


def test_commits_between_two_nights(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    made = []
    for title in ("one", "two", "three"):
        git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", title)
        made.append(git(tmp_path, "rev-parse", "HEAD"))
    found = commits_between(tmp_path, made[0], made[2] + "+")
    assert [line.split(" ", 1)[1] for line in found] == ["three", "two"]
    assert commits_between(tmp_path, made[0], made[0]) == ()
    assert commits_between(tmp_path, made[0], "f" * 40) == ()
    assert commits_between(tmp_path, "", made[0]) == ()
    assert commits_between(tmp_path, "--output=x", made[0]) == ()
    assert commits_between(tmp_path / "nothing", made[0], made[1]) == ()
    before, now = (Measured(sample=zoo_history(1).rows[0].samples[0]) for _ in range(2))
    assert "2 commits since, the last: " in explained(before, now, found).lines[0]
