"""Finalists are timed again, in turn, once; and what came of it decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from kit.search.stand_ins import (
    StandInDevices,
    StandInExecutor,
    cycles_of_tile,
    losing_first,
    seconds_of_tile,
    toy_task,
    toy_trace,
)
from kit.search.toy_spaces import timed, trial_of
from tilefarm.clock import SystemClock
from tilefarm.measurement import DeviceClock, Measurement, RunFailure, RunJob, Status, Trial
from tilefarm.trace import Trace
from tilefarm.watch.operations import Operations

from driver.campaign.measuring import CLOSE_LOOK
from driver.farm.settings import FarmSettings
from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL
from driver.run_events import Notice, Span, StepEnded
from driver.stop_token import StopToken
from driver.tune.prepared import best_of
from driver.tune.run_context import RunContext
from driver.tune.run_offs import run_offs
from driver.tune.settings import TuneSettings
from driver.tune.watched import watched
from tuner.trial_store import TrialStore

TASK = toy_task()
INNERS = (1, 2, 3, 4, 6, 12)


def trial(inner: int, milliseconds: float) -> Trial:
    point = {"inner": inner, "outer": 12 // inner, "extent": 12}
    return replace(
        trial_of(point, wall_time=timed(1e-3 * milliseconds, 0.001)),
        workload=TASK.digest,
        trace=toy_trace(point).digest,
    )


def inner_of(code: bytes) -> int:
    inner = Trace.from_json(code.decode()).steps[0].args[0]
    assert isinstance(inner, int)
    return inner


@dataclass
class Board:
    """Takes `milliseconds` for each candidate, a tenth more in each round; remembers the order."""

    milliseconds: Callable[[int], float]
    ran: list[int] = field(default_factory=list)

    def __call__(self, code: bytes, job: RunJob) -> Measurement | RunFailure:
        inner = inner_of(code)
        slower = 1.1 ** self.ran.count(inner)
        self.ran.append(inner)
        assert job.precision == CLOSE_LOOK
        counted = cycles_of_tile(code, job)
        seconds = 1e-3 * self.milliseconds(inner) * slower
        return replace(counted, counters=None, wall_time=timed(seconds))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TrialStore]:
    with TrialStore(tmp_path / "records.sqlite") as opened:
        opened.begin_run("test", {}, begun=0.0)
        yield opened


@contextmanager
def context(folder: Path, told: list[object], wait_seconds: float) -> Iterator[RunContext]:
    clock = SystemClock()
    with watched(Operations(), told.append, run_id="test", clock=clock, wall_origin=0.0) as watch:
        yield RunContext(
            settings=TuneSettings(
                model=DEMO_MODEL,
                calibrate=DEMO_CALIBRATION,
                out=folder,
                farm=FarmSettings(devices=2, device_wait_seconds=wait_seconds),
            ),
            clock=clock,
            watch=watch,
            stop=StopToken(),
            scratch=folder,
            run_id="test",
            wall_origin=0.0,
        )


def held(
    store: TrialStore, devices: StandInDevices, folder: Path, wait_seconds: float = 60.0
) -> tuple[list[object], StandInExecutor]:
    """What is told of a run-off, and who has compiled for it."""
    told, executor = list[object](), StandInExecutor()
    with context(folder, told, wait_seconds) as world:
        run_offs(world, {TASK.name: TASK}, store, executor=executor, leases=devices)
    return told, executor


def clocked(run_kernel: Callable[[bytes, RunJob], Measurement | RunFailure]) -> StandInDevices:
    return StandInDevices(2, run_kernel, clock=DeviceClock.SECONDS)


def test_finalists_are_timed_in_turn_and_the_best_there_is_the_best(
    store: TrialStore, tmp_path: Path
) -> None:
    for inner, milliseconds in ((1, 1.02), (2, 1.00), (3, 1.01), (4, 2.0)):
        store.insert(trial(inner, milliseconds), run="test")
    board = Board(lambda inner: {1: 1.00, 2: 1.03, 3: 0.99}[inner])
    told, _ = held(store, clocked(board), tmp_path)
    assert board.ran == [2, 3, 1] * 5
    best = best_of(TASK, store)
    assert best is not None
    assert dict(best.point)["inner"] == 3
    assert best.cost == pytest.approx(0.99e-3 * 1.1**2), "the median of its rounds"
    spans = [each for each in told if isinstance(each, Span) and each.kind == "rerun"]
    assert [(each.lane, each.label) for each in spans] == [("sim0", TASK.name)] * 15
    (ended,) = (each for each in told if isinstance(each, StepEnded))
    assert ended.detail == "3 finalists of 1 workload timed again, in turn"


def test_what_the_records_know_is_not_timed_again(store: TrialStore, tmp_path: Path) -> None:
    for inner, milliseconds in ((1, 1.02), (2, 1.00)):
        store.insert(trial(inner, milliseconds), run="test")
    held(store, clocked(seconds_of_tile), tmp_path)
    again = Board(lambda _: 1.0)
    told, executor = held(store, clocked(again), tmp_path)
    assert (told, again.ran, executor.built) == ([], [], [])
    store.insert(trial(3, 1.01), run="test")
    held(store, clocked(again), tmp_path)
    assert {*again.ran} == {1, 2, 3}


@pytest.mark.parametrize("trials", [[trial(1, 1.0), trial(2, 1.2)], [trial_of({}, cycles=7)] * 2])
def test_nothing_is_timed_again_where_nothing_is_in_doubt(
    store: TrialStore, tmp_path: Path, trials: list[Trial]
) -> None:
    for each in trials:
        store.insert(each, run="test")
    assert held(store, StandInDevices(), tmp_path)[1].built == []


def test_a_finalist_that_fails_is_out_of_it(store: TrialStore, tmp_path: Path) -> None:
    for inner, milliseconds in ((1, 1.00), (2, 1.01), (3, 1.02)):
        store.insert(trial(inner, milliseconds), run="test")
    board = Board(lambda inner: 1.0 - 0.1 * inner)

    def unstable(code: bytes, job: RunJob) -> Measurement | RunFailure:
        if inner_of(code) == 3 and board.ran.count(1) == 2:
            return RunFailure(artifact=job.artifact, status=Status.WRONG_RESULT, why="unstable")
        return board(code, job)

    held(store, clocked(unstable), tmp_path)
    best = best_of(TASK, store)
    assert best is not None
    assert dict(best.point)["inner"] == 2
    assert held(store, clocked(board), tmp_path)[1].built == [], "it is decided"


def test_a_run_off_that_two_devices_shared_is_done_again(store: TrialStore, tmp_path: Path) -> None:
    """The first device is lost under the first run, and it goes on with the other one."""
    for inner, milliseconds in ((1, 1.00), (2, 1.01)):
        store.insert(trial(inner, milliseconds), run="test")
    lost = losing_first(1, seconds_of_tile)
    runs: list[str] = []

    def second_is_lost(code: bytes, job: RunJob) -> Measurement | RunFailure:
        runs.append(job.entry)
        return lost(code, job) if len(runs) > 1 else seconds_of_tile(code, job)

    told, _ = held(store, clocked(second_is_lost), tmp_path)
    kept = store.run_off(TASK.digest)
    assert kept is not None
    assert {len(rounds) for rounds in kept.times.values()} == {5}
    assert len(runs) > 2 * 5
    assert not [each for each in told if isinstance(each, Notice)]


def test_what_the_farm_spoils_is_no_run_off_and_said(
    store: TrialStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Next time it is tried again: a finalist is not to blame for a busy host."""
    monkeypatch.setattr("driver.campaign.job_runner.rest_seconds", lambda _: 0.0)
    monkeypatch.setattr("driver.farm.device_thread.rest_seconds", lambda _: 0.0)
    for inner, milliseconds in ((1, 1.00), (2, 1.01)):
        store.insert(trial(inner, milliseconds), run="test")

    def busy(code: bytes, job: RunJob) -> Measurement | RunFailure:
        return RunFailure(artifact=job.artifact, status=Status.INFRA_ERROR, why="too busy")

    told, _ = held(store, clocked(busy), tmp_path, wait_seconds=0.0)
    assert store.run_off(TASK.digest) is None
    (notice,) = (each for each in told if isinstance(each, Notice))
    assert "no device could time all finalists" in notice.text
    best = best_of(TASK, store)
    assert best is not None
    assert dict(best.point)["inner"] == 1
