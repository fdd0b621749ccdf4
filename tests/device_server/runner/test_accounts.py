"""What an account is taken for, and which times a child may tell."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tilefarm.digest import Digest
from tilefarm.measurement import Counters, Precision, RunJob, Status, TimelineEvent, WallTime

from device_server.runner.accounts import Counted, counted, profiled
from device_server.runner.frames import Account, Calls, DoneReply, FailedReply, FailureKind
from device_server.runner.told_times import implausible
from device_server.runner.verdicts import RunProblem

JOB = RunJob(artifact=Digest.of(b""), entry="entry", buffers=(), samples=3)
EVENT = TimelineEvent(module="load", name="LOAD", begin_cycle=0, end_cycle=1)
DONE = DoneReply(
    run_seconds=0.5,
    counters=None,
    sample_cycles=(),
    seconds=(),
    wall_time=None,
    profile=(),
    timeline=(),
)


def account(*entries: tuple[int, int], failed: FailedReply | None = None) -> Account:
    """Calls, and the cycles of each."""
    calls = tuple(Calls(calls, Counters(cycles=cycles)) for calls, cycles in entries)
    return Account(failed, calls, (EVENT,))


def test_an_account_of_the_samples_is_what_they_took() -> None:
    assert counted(JOB, account((3, 7))) == Counted(Counters(cycles=7), (7, 7, 7), (EVENT,))


def test_the_call_with_the_most_cycles_is_told() -> None:
    found = counted(JOB, account((1, 7), (1, 20), (1, 0)))
    assert found == Counted(Counters(cycles=20), (7, 20, 0), (EVENT,))


@pytest.mark.parametrize("entries", [(), ((2, 7),), ((4, 7),), ((3, 7), (1, 0))])
def test_an_account_of_other_calls_is_not_believed(entries: tuple[tuple[int, int], ...]) -> None:
    found = counted(JOB, account(*entries))
    assert isinstance(found, RunProblem)
    assert found.status is Status.RUN_CRASH
    assert "but 3 were made; try: " in found.why


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (FailureKind.RUNTIME, Status.RUN_CRASH),
        (FailureKind.MEMORY, Status.RESOURCE_EXCEEDED),
    ],
)
def test_an_accelerator_that_failed_says_why(kind: FailureKind, status: Status) -> None:
    for judge in (counted, profiled):
        found = judge(JOB, account((3, 7), failed=FailedReply(kind, "a deadlock")))
        assert found == RunProblem(status, "a deadlock")


def test_a_profile_is_of_the_last_calls() -> None:
    job = replace(JOB, samples=1, repeats=2, profile=("one", "other"))
    assert profiled(job, account((3, 9), (1, 4), (1, 5))) == (4, 5)
    assert isinstance(profiled(job, account((4, 9), (1, 4), (1, 5))), RunProblem)
    timed = replace(job, precision=Precision(error=0.1, seconds=1.0))
    assert profiled(timed, account((60, 9), (1, 4), (1, 5), (1, 4), (1, 5))) == (4, 5)
    assert isinstance(profiled(timed, account((2, 9), (1, 4), (1, 5))), RunProblem)


def wall_time(seconds: float, *, calls: int, regions: int) -> WallTime:
    return WallTime(
        minimum_seconds=seconds,
        p10_seconds=seconds,
        median_seconds=2 * seconds,
        p90_seconds=4 * seconds,
        calls=calls,
        regions=regions,
    )


def test_times_are_at_most_as_long_as_the_child_had() -> None:
    assert implausible(JOB, DONE, 0.5) == ""
    assert implausible(JOB, DONE, 0.499) == "a run of 0.5 s within 0.499 s"
    job = replace(JOB, repeats=2)
    assert implausible(job, replace(DONE, seconds=(0.3, 0.2)), 0.5) == ""
    assert "calls of 0.6 s and more" in implausible(job, replace(DONE, seconds=(0.3, 0.3)), 0.5)


@pytest.mark.parametrize(("regions", "least_seconds"), [(1, 0.04), (5, 0.10), (11, 0.21)])
def test_what_is_timed_by_the_clock_took_all_of_its_regions(
    regions: int, least_seconds: float
) -> None:
    """Eleven regions: five take the minimum, four the median, two the longest, or more."""
    time = wall_time(0.001, calls=10, regions=regions)
    job = replace(JOB, precision=Precision(error=0.1, seconds=1.0))
    done = replace(DONE, run_seconds=0.0, wall_time=time)
    assert implausible(job, done, least_seconds) == ""
    assert "and more within" in implausible(job, done, 0.99 * least_seconds)


def test_an_answer_is_to_what_was_asked() -> None:
    job = replace(JOB, repeats=1)
    timed = replace(JOB, precision=Precision(error=0.1, seconds=1.0))
    assert implausible(job, DONE, 1.0) == "0 times for 1 repeats"
    assert implausible(timed, DONE, 1.0) == "a time that was not asked for, or none that was"
    assert implausible(replace(JOB, profile=("a",)), DONE, 1.0) == (
        "a profile of 0 calls for one of 1"
    )
    odd = replace(DONE, counters=Counters(cycles=1), sample_cycles=(1, 1))
    assert implausible(JOB, odd, 1.0) == "cycles of 2 calls for 3"
    assert (
        implausible(JOB, replace(DONE, sample_cycles=(1,)), 1.0)
        == "cycles of 1 calls, counted by nobody"
    )
