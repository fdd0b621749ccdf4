"""One tuning of a network: budget, order, resuming."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from kit.toy_spaces import conv_like_cycles, conv_like_space, empty_space, pair_space, trial_of
from tilefarm.errors import SettingsError
from tilefarm.measurement import Status, Trial
from tilefarm.space import Point

from tuner.session import Proposal, Task, TuningSession


def small_tasks() -> dict[str, Task]:
    return {
        "a": Task(conv_like_space(14, 14, 2, 2, 3), 1),
        "b": Task(conv_like_space(28, 28, 2, 2, 3), 3),
        "c": Task(conv_like_space(28, 28, 4, 4, 1), 1),
    }


def answer(proposal: Proposal) -> Trial:
    return trial_of(proposal.point, cycles=conv_like_cycles(proposal.point))


def run(session: TuningSession, limit: int = 10_000, batch: int = 3) -> list[Proposal]:
    """Everything that a session proposes, answered at once."""
    asked: list[Proposal] = []
    while len(asked) < limit and (proposals := session.ask(min(batch, limit - len(asked)))):
        for proposal in proposals:
            session.tell(proposal.task, answer(proposal))
        asked += proposals
    return asked


def names(proposals: Sequence[Proposal]) -> list[tuple[str, tuple[tuple[str, int], ...]]]:
    return [(p.task, tuple(sorted(p.point.items()))) for p in proposals]


def test_defaults_come_first_and_the_budget_is_kept() -> None:
    tasks = small_tasks()
    session = TuningSession(tasks, trials=40, proposer="random", seed=1)
    asked = run(session)
    assert len(asked) == 40
    assert session.finished
    assert [p.task for p in asked[:3]] == ["a", "b", "c"]
    for proposal in asked[:3]:
        default = dict(tasks[proposal.task].space.default)
        assert {k: proposal.point[k] for k in default} == default
    assert len(set(names(asked))) == 40
    measured = [conv_like_cycles(p.point) for p in asked if p.task == "b"]
    assert session.best_cycles("b") == min(measured)


def test_what_is_to_be_measured_again_comes_after_the_defaults_and_once() -> None:
    tasks = small_tasks()
    first = run(TuningSession(tasks, trials=40, proposer="random", seed=1))
    known, due = first[5], first[-4:]
    again: dict[str, list[Point]] = {name: [] for name in tasks}
    for each in (first[0], known, *due):
        tunables = (v.name for v in tasks[each.task].space.tunables)
        again[each.task].append({name: each.point[name] for name in tunables})
    again["a"].append({v.name: 10**6 for v in tasks["a"].space.tunables})
    history = {known.task: [answer(known)]}
    asked = run(
        TuningSession(tasks, trials=40, proposer="random", seed=1, history=history, again=again)
    )
    assert len(asked) == len(set(names([*asked, known]))) - 1 == 39
    assert [p.task for p in asked[:3]] == ["a", "b", "c"]
    assert sorted(names(asked[3:7])) == sorted(names(due))


def test_what_is_to_be_measured_again_of_a_task_that_is_given_up_is_not() -> None:
    tasks = small_tasks()
    asked = run(TuningSession(tasks, trials=30, proposer="random", seed=1))
    point = next(p.point for p in asked[3:] if p.task == "b")
    session = TuningSession(tasks, trials=30, proposer="random", seed=1, again={"b": [point]})
    session.give_up("b")
    assert not [p for p in run(session)[3:] if p.task == "b"]


def test_every_task_gets_its_default_even_on_a_tiny_budget() -> None:
    asked = run(TuningSession(small_tasks(), trials=1, proposer="random"))
    assert [p.task for p in asked] == ["a", "b", "c"]


def test_plain_tuples_are_tasks_too() -> None:
    session = TuningSession({"p": (pair_space(), 1, 0)}, trials=3, proposer="grid")  # type: ignore[dict-item]
    assert len(run_pairs(session)) == 3


def run_pairs(session: TuningSession) -> list[Point]:
    points: list[Point] = []
    while proposals := session.ask(2):
        for proposal in proposals:
            session.tell(proposal.task, trial_of(proposal.point, cycles=10))
            points.append(proposal.point)
    return points


@pytest.mark.parametrize("proposer", ["random", "grid", "guided", "evolution"])
def test_a_session_ends_when_its_spaces_are_exhausted(proposer: str) -> None:
    tasks = {
        "p": Task(pair_space()),
        "q": Task(pair_space(extent=20, limit=20)),
        "none": Task(empty_space()),
    }
    session = TuningSession(tasks, trials=500, proposer=proposer)
    assert sorted(p["inner"] for p in run_pairs(session)) == [1, 1, 2, 2, 3, 4, 4, 5, 6, 10, 20]
    assert session.finished


def test_a_session_waits_for_what_is_in_flight() -> None:
    session = TuningSession({"p": Task(pair_space())}, trials=2, proposer="random")
    first, second = session.ask(5)
    assert session.ask(5) == []
    assert session.in_flight == 2
    assert not session.finished
    session.tell("p", trial_of(second.point, Status.RUN_TIMEOUT))
    session.tell("p", trial_of(first.point, cycles=5))
    assert session.finished
    assert session.told == 2


def test_a_cancelled_trial_gives_its_place_back() -> None:
    session = TuningSession({"p": Task(pair_space())}, trials=2, proposer="random")
    first = session.ask(2)[0]
    session.tell("p", trial_of(first.point, Status.CANCELLED))
    assert session.in_flight == 1
    assert len(session.ask(2)) == 1


def test_an_answer_told_twice_counts_once() -> None:
    session = TuningSession({"p": Task(pair_space())}, trials=3, proposer="random")
    proposal = session.ask(1)[0]
    for _ in range(2):
        session.tell("p", trial_of(proposal.point, cycles=7))
    assert (session.told, session.in_flight) == (1, 0)


def test_what_is_doubted_is_out_again_and_no_longer_the_best() -> None:
    session = TuningSession({"p": Task(pair_space())}, trials=3, proposer="random")
    slow, fast = (trial_of(p.point, cycles=c) for p, c in zip(session.ask(2), (9, 1), strict=True))
    session.tell("p", slow)
    session.tell("p", fast)
    assert session.best_cycles("p") == 1
    session.doubt("p", fast)
    session.doubt("p", fast)
    assert (session.told, session.in_flight, session.best_cycles("p")) == (1, 1, 9)
    assert len(session.ask(3)) == 1
    session.tell("p", replace(fast, cycles=8))
    assert (session.told, session.best_cycles("p")) == (2, 8)


def test_resuming_proposes_nothing_twice_and_spends_only_the_rest() -> None:
    tasks = small_tasks()
    before = run(TuningSession(tasks, trials=60, proposer="guided", seed=4), limit=33)
    history: Mapping[str, list[Trial]] = {
        name: [answer(p) for p in before if p.task == name] for name in tasks
    }
    resumed = TuningSession(tasks, trials=60, proposer="guided", seed=4, history=history)
    assert resumed.told == 33
    assert resumed.best_cycles("a") is not None
    after = run(resumed)
    assert len(after) == 27
    assert not set(names(before)) & set(names(after))


def test_records_of_another_space_are_left_aside() -> None:
    foreign = trial_of({"something": 1}, cycles=3)
    session = TuningSession({"p": Task(pair_space())}, trials=5, history={"p": [foreign]})
    assert session.told == 0
    assert len(run_pairs(session)) == 5


def test_same_seed_same_proposals() -> None:
    def proposals() -> list[Proposal]:
        return run(TuningSession(small_tasks(), trials=45, proposer="guided", seed=2))

    assert names(proposals()) == names(proposals())


def test_an_unknown_proposer_is_refused() -> None:
    with pytest.raises(SettingsError, match="unknown proposer"):
        TuningSession(small_tasks(), trials=5, proposer="magic")


def test_a_task_that_is_given_up_gets_no_more_trials() -> None:
    session = TuningSession(small_tasks(), trials=40, proposer="random")
    assert {p.task for p in session.ask(6)} == {"a", "b", "c"}
    session.give_up("b")
    assert {p.task for p in session.ask(10)} == {"a", "c"}
