"""One tuning of a network: budget, order, resuming."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import pytest
from kit.search.toy_spaces import (
    conv_like_cycles,
    conv_like_space,
    empty_space,
    pair_space,
    trial_of,
    with_estimate,
)
from tilefarm.errors import SettingsError
from tilefarm.measurement import Status, Trial
from tilefarm.space import ESTIMATE, Point

from tuner.lookahead import Lookahead
from tuner.session import Proposal, TuningSession, WeightedSpace


def small_tasks() -> dict[str, WeightedSpace]:
    return {
        "a": WeightedSpace(conv_like_space(14, 14, 2, 2, 3), weight=1),
        "b": WeightedSpace(conv_like_space(28, 28, 2, 2, 3), weight=3),
        "c": WeightedSpace(conv_like_space(28, 28, 4, 4, 1), weight=1),
    }


def answer(proposal: Proposal) -> Trial:
    return trial_of(proposal.point, cycles=conv_like_cycles(proposal.point))


def run(session: TuningSession, limit: int = 10_000, batch: int = 3) -> list[Proposal]:
    """Everything that a session proposes, answered at once."""
    asked: list[Proposal] = []
    while len(asked) < limit and (proposals := session.ask(min(batch, limit - len(asked)))):
        for proposal in proposals:
            session.tell(proposal.number, answer(proposal))
        asked += proposals
    return asked


def names(proposals: Sequence[Proposal]) -> list[tuple[str, tuple[tuple[str, int], ...]]]:
    return [(p.task, tuple(sorted(p.point.items()))) for p in proposals]


def test_first_candidates_and_then_defaults_come_first_and_the_budget_is_kept() -> None:
    tasks = small_tasks()
    session = TuningSession(tasks, trials=40, proposer="random", seed=1)
    asked = run(session)
    assert len(asked) == session.told == 40
    assert [p.number for p in asked] == [*range(1, 41)]
    assert [p.task for p in asked[:6]] == ["a", "b", "c"] * 2
    for proposal in asked[3:6]:
        default = dict(tasks[proposal.task].space.default)
        assert {k: proposal.point[k] for k in default} == default
    assert len(set(names(asked))) == 40


def test_seeds_come_before_defaults_and_stand_for_them_on_a_tiny_budget() -> None:
    tasks = small_tasks()
    found = next(p for p in run(TuningSession(tasks, trials=40)) if p.number > 30)
    tasks[found.task] = replace(tasks[found.task], seed=found.point)
    asked = run(TuningSession(tasks, trials=0))
    assert asked[0].point == found.point
    assert sorted(proposal.task for proposal in asked) == ["a", "b", "c"]
    more = run(TuningSession(tasks, trials=10))
    assert names(more[:3]) == names(asked)
    assert len({*names(more)}) == 10


@pytest.mark.parametrize("has_estimate", [True, False])
def test_a_seed_of_another_workload_comes_behind_what_an_estimate_says(has_estimate: bool) -> None:
    space = conv_like_space(14, 14, 2, 2, 3)
    space = with_estimate(space) if has_estimate else space
    alone = run(TuningSession({"a": WeightedSpace(space)}, trials=20))
    near = WeightedSpace(space, seed=alone[-1].point, is_seed_near=True)
    (only,) = run(TuningSession({"a": near}, trials=0))
    first, second, *_ = run(TuningSession({"a": near}, trials=20))
    assert only.point == first.point == (alone[0].point if has_estimate else alone[-1].point)
    if has_estimate:
        assert second.point == alone[-1].point


def test_a_seed_that_is_no_point_of_the_space_is_left_aside() -> None:
    tasks = small_tasks()
    plain = names(run(TuningSession(tasks, trials=9)))
    tasks["a"] = replace(tasks["a"], seed={"nothing": 3})
    assert names(run(TuningSession(tasks, trials=9))) == plain


def test_every_task_gets_a_trial_even_on_a_tiny_budget() -> None:
    asked = run(TuningSession(small_tasks(), trials=1, proposer="random"))
    assert [p.task for p in asked] == ["a", "b", "c"]


def test_a_small_budget_is_not_spent_on_defaults() -> None:
    tasks = {"a": WeightedSpace(with_estimate(conv_like_space()))}
    default = dict(tasks["a"].space.default)
    for trials, is_there in ((2, False), (3, True)):
        points = [dict(p.point) for p in run(TuningSession(tasks, trials=trials))]
        assert (default in [{k: p[k] for k in default} for p in points]) is is_there


def test_tasks_with_the_same_space_are_one_search_and_end_with_the_same_schedule() -> None:
    space = with_estimate(conv_like_space(14, 14, 2, 2, 3))
    tasks = {"a": WeightedSpace(space), "b": WeightedSpace(replace(space, name="other"))}
    asked = run(TuningSession(tasks, trials=40, lookahead=Lookahead(2)))
    best = {n: min(conv_like_cycles(p.point) for p in asked if p.task == n) for n in tasks}
    assert best["a"] == best["b"]
    assert [p.task for p in asked].count("b") < 12


def estimated(point: Point) -> Trial:
    return trial_of(point, cycles=point[ESTIMATE] * (100 + point["slots"]))


def test_a_search_ends_when_nothing_is_left_that_could_gain_enough_and_says_so() -> None:
    tasks = {n: WeightedSpace(with_estimate(conv_like_space(28, h, 2, 2, 3))) for n, h in SIZES}
    asked: dict[float, list[Proposal]] = {}
    for least_gain in (0.0, 0.01):
        session = TuningSession(tasks, trials=90, lookahead=Lookahead(6), least_gain=least_gain)
        asked[least_gain] = []
        while proposals := session.ask(4):
            for each in proposals:
                session.tell(each.number, estimated(each.point))
            asked[least_gain] += proposals
        why = "nothing left that could gain 1 %: 0." if least_gain else ""
        assert session.why_ended.startswith(why)
        assert bool(session.why_ended) == bool(least_gain)
    assert len(asked[0.0]) == 90
    assert len(asked[0.01]) < 60
    for name in tasks:
        best = [min(p.point[ESTIMATE] for p in a if p.task == name) for a in asked.values()]
        assert best[1] <= 1.01 * best[0]


SIZES: Final = (("small", 14), ("large", 28))


def test_tasks_without_estimates_are_searched_each_for_itself() -> None:
    tasks = {name: WeightedSpace(conv_like_space(14, 14, 2, 2, 3)) for name in "ab"}
    asked = run(TuningSession(tasks, trials=40))
    assert 15 <= [p.task for p in asked].count("b") <= 25


def run_pairs(session: TuningSession) -> list[Point]:
    points: list[Point] = []
    while proposals := session.ask(2):
        for proposal in proposals:
            session.tell(proposal.number, trial_of(proposal.point, cycles=10))
            points.append(proposal.point)
    return points


@pytest.mark.parametrize("proposer", ["random", "grid", "guided", "evolution"])
def test_a_session_ends_when_its_spaces_are_exhausted(proposer: str) -> None:
    tasks = {
        "p": WeightedSpace(pair_space()),
        "q": WeightedSpace(pair_space(extent=20, limit=20)),
        "none": WeightedSpace(empty_space()),
    }
    session = TuningSession(tasks, trials=500, proposer=proposer)
    assert sorted(p["inner"] for p in run_pairs(session)) == [1, 1, 2, 2, 3, 4, 4, 5, 6, 10, 20]
    assert session.told == 11
    (given_up,) = session.given_up()
    assert given_up.task == "none"
    assert given_up.why == ("nothing keeps all of its constraints prod, at_most_six, at_least_two")


def test_an_answer_told_twice_counts_once() -> None:
    session = TuningSession({"p": WeightedSpace(pair_space())}, trials=3, proposer="random")
    proposal = session.ask(1)[0]
    for _ in range(2):
        session.tell(proposal.number, trial_of(proposal.point, cycles=7))
    assert (session.told, session.asked) == (1, 1)


def test_nothing_is_proposed_before_what_it_has_to_know_has_ended() -> None:
    session = TuningSession(small_tasks(), trials=40, lookahead=Lookahead(4))
    first, second = session.ask(9)
    assert session.ask(9) == []
    session.tell(second.number, answer(second))
    assert session.ask(9) == [], "the first one is missing"
    session.tell(first.number, answer(first))
    assert [p.number for p in session.ask(9)] == [3, 4, 5, 6], "four are out at most"


def test_what_other_searches_told_is_not_proposed_and_is_of_the_budget() -> None:
    tasks = small_tasks()
    before = run(TuningSession(tasks, trials=60, proposer="guided", seed=4), limit=33)
    history: Mapping[str, list[Trial]] = {
        name: [answer(p) for p in before if p.task == name] for name in tasks
    }
    another = TuningSession(tasks, trials=60, proposer="guided", seed=5, history=history)
    assert another.told == 33
    after = run(another)
    assert [p.number for p in after] == [*range(1, 28)]
    assert not set(names(before)) & set(names(after))


def test_a_task_that_other_searches_did_not_have_is_tried_though_they_spent_the_budget() -> None:
    tasks = small_tasks()
    first, *others = tasks
    before = run(TuningSession({first: tasks[first]}, trials=12, seed=4))
    another = TuningSession(tasks, trials=12, seed=4, history={first: [answer(p) for p in before]})
    assert another.budget == len(before) + len(others)
    assert sorted(p.task for p in run(another)) == sorted(others)


def test_records_of_another_space_are_left_aside() -> None:
    foreign = trial_of({"something": 1}, cycles=3)
    session = TuningSession({"p": WeightedSpace(pair_space())}, trials=5, history={"p": [foreign]})
    assert session.told == 0
    assert len(run_pairs(session)) == 5


def test_same_seed_same_proposals() -> None:
    def proposals() -> list[Proposal]:
        return run(TuningSession(small_tasks(), trials=45, proposer="guided", seed=2))

    assert names(proposals()) == names(proposals())


def test_an_unknown_proposer_is_refused() -> None:
    with pytest.raises(SettingsError, match="unknown proposer"):
        TuningSession(small_tasks(), trials=5, proposer="magic")


def test_a_task_whose_candidates_all_fail_alike_gets_no_more_trials() -> None:
    session = TuningSession(small_tasks(), trials=80, proposer="random", lookahead=Lookahead(6))
    asked: list[Proposal] = []
    while proposals := session.ask(3):
        for each in proposals:
            failed = replace(trial_of(each.point, Status.COMPILE_ERROR), why="too big: 17 of 16")
            session.tell(each.number, failed if each.task == "b" else answer(each))
        asked += proposals
    assert 20 <= [p.task for p in asked].count("b") <= 26, "what was out already goes on"
    (given_up,) = session.given_up()
    assert given_up.task == "b"
    assert given_up.why == "20 candidates and no other failed alike: compile_error: too big: … of …"
    assert session.given_up() == []
