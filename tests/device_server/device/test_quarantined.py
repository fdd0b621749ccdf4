"""What crashed a device twice is refused, remembered over restarts within bounds, and forgiven."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from kit.manual_clock import ManualClock
from tilefarm.digest import Digest
from tilefarm.measurement import BufferSpec, Counters, Measurement, Role, RunFailure, RunJob, Status

from device_server.device.quarantined import CRASHES, MOST, QuarantinedRuns

JOB = RunJob(
    artifact=Digest.of(b"code"),
    entry="kernel",
    buffers=(BufferSpec(name="x", role=Role.INPUT, nbytes=4, content=Digest.of(b"1234")),),
)


class Told:
    """A device's folder, and what its log was told."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "quarantined.json"
        self.events: list[str] = []
        self.clock = ManualClock(1000.0)

    def begun(self) -> QuarantinedRuns:
        return QuarantinedRuns(self.file, self.log, self.clock, device="sim0")

    def log(self, event: str, **fields: object) -> None:
        self.events.append(event)


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def crashed(job: RunJob = JOB, why: str = "SIGSEGV") -> RunFailure:
    return RunFailure(artifact=job.artifact, status=Status.RUN_CRASH, why=why)


def test_the_second_crash_is_the_last_also_after_a_restart(told: Told) -> None:
    runs = told.begun()
    runs.ended(JOB, crashed(why="SIGILL"))
    assert runs.refusal(JOB) is None
    runs = told.begun()
    runs.ended(JOB, crashed())
    for later in (runs, told.begun()):
        refusal = later.refusal(replace(JOB, samples=5, timeout_seconds=1.0))
        assert refusal is not None
        assert (refusal.status, refusal.device) == (Status.RUN_CRASH, "sim0")
        assert "crashed device sim0 2 times, the last time by 'SIGSEGV" in refusal.why
        assert "--readmit sim0" in refusal.why
    assert told.events == ["quarantined"]


def test_what_ended_otherwise_is_no_crash(told: Told) -> None:
    runs = told.begun()
    others = [status for status in Status if status not in (Status.OK, Status.RUN_CRASH)]
    for _ in range(CRASHES):
        runs.ended(JOB, Measurement(artifact=JOB.artifact, device="sim0", counters=Counters()))
        for status in others:
            runs.ended(JOB, replace(crashed(), status=status))
    assert runs.refusal(JOB) is None
    assert not told.file.exists()


def test_a_run_that_hangs_the_device_ends_as_one_that_takes_too_long(told: Told) -> None:
    for _ in range(CRASHES):
        told.begun().hung(JOB, "hangs: no answer within 21 s")  # each time, the server ends
    refusal = told.begun().refusal(JOB)
    assert refusal is not None
    assert refusal.status is Status.RUN_TIMEOUT


def test_other_calls_of_the_artifact_may_run(told: Told) -> None:
    runs = told.begun()
    for _ in range(CRASHES):
        runs.ended(JOB, crashed())
    small = (replace(JOB.buffers[0], nbytes=2),)
    for other in (replace(JOB, entry="other"), replace(JOB, buffers=small)):
        assert runs.refusal(other) is None
    same = (replace(JOB.buffers[0], content=Digest.of(b"other")),)
    assert runs.refusal(replace(JOB, buffers=same)) is not None


def test_everything_is_forgiven(told: Told) -> None:
    runs = told.begun()
    for _ in range(CRASHES):
        runs.ended(JOB, crashed())
    runs.forget()
    assert runs.refusal(JOB) is None
    assert told.begun().refusal(JOB) is None


def test_who_wants_to_know_is_told_what_is_refused_since_when_and_how_it_ended(told: Told) -> None:
    runs = told.begun()
    runs.ended(JOB, crashed(why="SIGILL"))
    runs.ended(replace(JOB, entry="once"), crashed())
    assert (runs.edition, runs.told.runs) == (0, ())
    told.clock.advance(5)
    runs.ended(JOB, crashed())
    told.clock.advance(60)
    edition = runs.edition
    runs.hung(JOB, "hangs")  # it was under way when the other one crashed
    assert 0 < edition < runs.edition
    told.clock.advance(40)
    for later in (runs, told.begun()):
        assert later.told.edition == later.edition > 0
        (run,) = later.told.runs
        assert (run.artifact, run.entry, run.crashes) == (JOB.artifact, "kernel", 3)
        assert (run.status, run.why, run.refused_seconds) == ("run_timeout", "hangs", 100.0)
    edition = runs.edition
    runs.forget()
    assert runs.edition > edition
    assert runs.told.runs == ()


def test_a_file_without_times_is_refused_since_it_was_written(told: Told) -> None:
    runs = told.begun()
    for _ in range(CRASHES):
        runs.ended(JOB, crashed())
    rows = json.loads(told.file.read_text())
    for row in rows.values():
        del row["since"]
    told.file.write_text(json.dumps(rows))
    os.utime(told.file, (400.0, 400.0))
    (run,) = told.begun().told.runs
    assert run.refused_seconds == 600.0
    assert told.events == ["quarantined"]


def test_what_is_forgotten_for_want_of_room_is_another_edition(told: Told) -> None:
    runs = told.begun()
    for _ in range(CRASHES):
        runs.ended(JOB, crashed())
    edition = runs.edition
    for number in range(MOST):
        runs.ended(replace(JOB, entry=f"kernel{number}"), crashed())
    assert runs.told.runs == ()
    assert runs.edition > edition


def test_it_does_not_grow_without_end(told: Told) -> None:
    runs = told.begun()
    jobs = [replace(JOB, entry=f"kernel{number}") for number in range(MOST + 1)]
    for job in jobs:
        for _ in range(CRASHES):
            runs.ended(job, crashed(why="x" * 10_000))
    assert runs.refusal(jobs[0]) is None
    assert runs.refusal(jobs[1]) is not None
    assert told.begun().refusal(jobs[-1]) is not None
    assert told.file.stat().st_size < 1000 * MOST


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": 1}', '{"a": {"crashes": "x"}}'])
def test_a_damaged_file_is_told_and_begun_anew(told: Told, content: str) -> None:
    told.file.write_text(content)
    runs = told.begun()
    assert told.events == ["quarantine_not_kept"]
    for _ in range(CRASHES):
        runs.ended(JOB, crashed())
    assert told.begun().refusal(JOB) is not None


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    told = Told(tmp_path / "none")
    runs = told.begun()
    for _ in range(CRASHES):
        runs.ended(JOB, crashed())
    assert runs.refusal(JOB) is not None
    assert "quarantine_not_kept" in told.events
