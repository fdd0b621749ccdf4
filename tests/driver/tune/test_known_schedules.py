"""What a run takes from other runs is what still means the same, and is measured again first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kit.search.stand_ins import toy_task
from tilefarm.digest import Digest
from tilefarm.measurement import Status, Trial
from tilefarm.space import Point
from tilefarm.target import TARGETS

from driver.campaign.measuring import Task
from driver.campaign.tasks import task_of
from driver.program.vta.layers import BIASED, RESNET18
from driver.tune.continued import NEAR, SEEDS, continued
from driver.tune.known_schedules import known_schedules, records_of, success
from tuner.sampler import Sampler
from tuner.schedule_store import ScheduleRecord, ScheduleStore
from tuner.trial_store import TrialStore

TASKS = {task.name: task for task in (toy_task(1, 720), toy_task(2, 720))}
FIRST, SECOND = TASKS.values()


def _trial(point: Point, cycles: int | None, status: Status = Status.OK) -> Trial:
    return Trial(
        workload=FIRST.digest,
        trace=FIRST.trace(point).digest,
        point=FIRST.choice(point),
        status=status,
        cycles=cycles,
        spans=(("run", 1.0, 7.0),),
    )


def _records(folder: Path, *trials: Trial) -> list[ScheduleRecord]:
    with TrialStore(folder / "records.sqlite") as store:
        store.begin_run("one", {}, begun=0.0)
        for trial in trials:
            store.insert(trial, run="one")
        return list(records_of(TASKS, store, "0.1.0"))


def _points() -> tuple[Point, Point]:
    default = dict(FIRST.space.default)
    other = next(inner for inner in (2, 3, 5) if inner != default["inner"])
    return default, {**default, "inner": other, "outer": 720 // other}


def test_only_what_ended_well_is_remembered(tmp_path: Path) -> None:
    slow, fast = _points()
    (found,) = _records(tmp_path, _trial(slow, 900), _trial(fast, None, Status.RUN_CRASH))
    assert (found.cycles, found.workload, found.ended) == (900, FIRST.workload, 7.0)


def test_the_best_that_means_the_same_is_taken(tmp_path: Path) -> None:
    slow, fast = _points()
    good, best = _records(tmp_path, _trial(slow, 900), _trial(fast, 500))
    outdated = replace(best, cycles=400, trace=Digest.of(b"what it meant once"))
    unknown = replace(outdated, cycles=300, trace=Digest.of(b"z"), point=(("nothing", 1),))
    with ScheduleStore(tmp_path / "team.sqlite") as store:
        store.add([good, best, outdated, unknown])
        found = known_schedules(TASKS, store)
    assert dict(found.points) == {name: dict(FIRST.choice(fast)) for name in TASKS}
    assert dict(found.near) == {SECOND.name: FIRST.name}
    assert str(found) == (
        "1 of 2 workloads known, 1 near to others that are,"
        " 2 schedules of other spaces or times left out"
    )


@pytest.mark.parametrize("value", [-1, 0, 7, 2**31, 2**70])
def test_a_point_outside_its_space_is_left_out(tmp_path: Path, value: int) -> None:
    """No choice has such a value: it is looked up nowhere."""
    (good,) = _records(tmp_path, _trial(_points()[0], 900))
    odd = [
        replace(good, point=tuple((name, value) for name, _ in good.point)),
        replace(good, trace=Digest.of(b"z"), point=(*good.point, ("nothing", value))),
    ]
    with ScheduleStore(tmp_path / "team.sqlite") as store:
        store.add(odd)
        assert str(known_schedules(TASKS, store)).startswith("0 of 2 workloads known")


def test_records_of_another_target_are_none(tmp_path: Path) -> None:
    (good,) = _records(tmp_path, _trial(_points()[0], 900))
    with ScheduleStore(tmp_path / "team.sqlite") as store:
        store.add([replace(good, target=Digest.of(b"another"))])
        assert str(known_schedules(TASKS, store)) == "0 of 2 workloads known"


def test_a_point_that_a_near_space_lacks_is_passed_over(tmp_path: Path) -> None:
    (good,) = _records(tmp_path, _trial(_points()[1], 900))
    odd = toy_task(2, 7)
    with ScheduleStore(tmp_path / "team.sqlite") as store:
        store.add([good])
        assert not known_schedules({odd.name: odd}, store).points


def test_what_the_near_space_has_no_word_for_is_filled(tmp_path: Path) -> None:
    sim = TARGETS["sim"]
    plain = task_of(RESNET18["C8"].workload(sim), sim, count=1, macs=1, seed=0)
    biased = task_of(RESNET18["C8"].workload(sim, BIASED), sim, count=1, macs=1, seed=0)
    (point,) = Sampler(plain.space).sample(1, np.random.default_rng(3))
    record = ScheduleRecord(
        target=sim.digest,
        target_name="sim",
        workload=plain.workload,
        trace=plain.trace(point).digest,
        point=plain.choice(point),
        cycles=10**6,
    )
    with ScheduleStore(tmp_path / "team.sqlite") as store:
        store.add([record])
        found = known_schedules({biased.name: biased}, store)
    assert found.near == {biased.name: plain.name}
    assert dict(found.points[biased.name]).items() > dict(record.point).items()
    assert Sampler(biased.space).complete(found.points[biased.name]) is not None


def test_how_good_the_known_ones_were_is_told(tmp_path: Path) -> None:
    slow, fast = _points()
    _records(tmp_path, _trial(slow, 900), _trial(fast, 500))
    with TrialStore(tmp_path / "records.sqlite") as store:
        assert success({FIRST.name: fast}, TASKS, store) == (
            "nothing better was found than what was known"
        )
        assert success({FIRST.name: slow}, TASKS, store) == (
            "better than what was known in 1 workload, by 80.0% at most"
        )
        assert success({FIRST.name: {"nothing": 1}, SECOND.name: fast}, TASKS, store) == ""


def test_a_folder_keeps_the_seeds_that_it_began_with(tmp_path: Path) -> None:
    slow, fast = _points()
    with TrialStore(tmp_path / "records.sqlite") as store:

        def session(seed: Point, near: Sequence[str] = ()) -> Point:
            begun = continued(
                TASKS,
                store,
                trials=0,
                proposer="guided",
                seed=1,
                lookahead=None,
                seeds={FIRST.name: seed},
                near=near,
            )
            kept = {name: point and dict(point) for name, point in begun.seeds.items()}
            description = {SEEDS: kept, NEAR: [*begun.near]}
            store.begin_run(f"run {len(store.runs())}", description, begun=0.0)
            asked = begun.session.ask(5)
            assert [each.task for each in asked] == [*TASKS]
            return dict(FIRST.choice(asked[0].point))

        assert session(fast) == dict(FIRST.choice(fast))
        assert session(slow, near=[FIRST.name]) == dict(FIRST.choice(fast))


def test_tasks_that_options_bring_or_take_away_leave_the_seeds_of_the_others(
    tmp_path: Path,
) -> None:
    """As where a plugin's script is another one by now, or weights have 16 bits."""
    slow, fast = _points()
    third = toy_task(3, 720)
    odd = {SECOND.name: SECOND, third.name: third}
    with TrialStore(tmp_path / "records.sqlite") as store:

        def seeds(tasks: Mapping[str, Task], found: Mapping[str, Point]) -> dict[str, object]:
            begun = continued(
                tasks,
                store,
                trials=0,
                proposer="guided",
                seed=1,
                lookahead=None,
                seeds=found,
                near=[*found],
            )
            description = {SEEDS: begun.seeds, NEAR: [*begun.near]}
            store.begin_run(f"run {len(store.runs())}", description, begun=0.0)
            assert success(begun.seeds, tasks, store) == ""
            assert begun.near == {name for name, point in begun.seeds.items() if point is not None}
            return dict(begun.seeds)

        first = {FIRST.name: fast, SECOND.name: None}
        assert seeds(TASKS, {FIRST.name: fast}) == first
        other = {FIRST.name: slow, SECOND.name: slow, third.name: slow}
        assert seeds(odd, other) == {**first, third.name: slow}
        assert seeds(TASKS, other) == {**first, third.name: slow}
