"""What the death of a compile worker means: halving, second chances, typed failures."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kit.search.stand_ins import SIM, toy_workload
from tilefarm.artifact import Artifact, BuildFailure, CompileJob, ProgramJob
from tilefarm.errors import InfraError
from tilefarm.measurement import Status
from tilefarm.trace import Step, Trace

from compile_worker.worker import Job, Result
from driver.farm.compiling.executor import Builds, Workers
from driver.farm.compiling.retrying_worker import RetryingWorker
from driver.farm.compiling.worker import ProcessWorker, WorkerCrashed, WorkerLost, WorkerTimedOut


def job(number: int) -> CompileJob:
    return CompileJob(workload=toy_workload(), trace=Trace((Step(f"s{number}"),)), target=SIM)


def name_of(job: Job) -> str:
    if isinstance(job, ProgramJob):
        return "program"
    return job.trace.steps[0].primitive


@dataclass
class Worker:
    """Compiles at once; dies, hangs or is lost on the named steps, the first `times` times."""

    crashes: Sequence[str] = ()
    hangs: Sequence[str] = ()
    lost: Sequence[str] = ()
    times: int = 100
    tasks: list[list[str]] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    broken: Exception | None = None

    def prepare(self) -> None:
        pass

    def compile(self, jobs: Sequence[Job], timeout_seconds: float) -> list[Result]:
        names = [name_of(job) for job in jobs]
        self.tasks.append(names)
        self.limits.append(timeout_seconds)
        if self.broken:
            raise self.broken
        if self.times and set(names) & {*self.crashes, *self.lost}:
            self.times -= 1
            raise WorkerCrashed("SIGSEGV") if set(names) & set(self.crashes) else WorkerLost("gone")
        if set(names) & set(self.hangs):
            raise WorkerTimedOut("no answer")
        return [
            Artifact(job=job.digest, code=b"", symbols=("kernel",), build_seconds=0.0)
            for job in jobs
        ]

    def kill(self) -> None:
        pass

    def close(self) -> None:
        pass


def statuses(worker: Worker, count: int, alone: Worker | None = None) -> dict[int, Status]:
    """How each job of one batch ended; `alone` is where what failed badly is compiled by itself."""
    builds: queue.SimpleQueue[Builds | BaseException] = queue.SimpleQueue()
    workers = Workers([worker], lambda _: alone or worker, timeout_seconds=1.0)
    workers.submit([(n, job(n)) for n in range(count)], builds.put)
    ended: dict[int, Status] = {}
    while len(ended) < count:
        told = builds.get(timeout=30)
        assert isinstance(told, Builds)
        ended.update({build.number: status_of(build.result) for build in told.builds})
    workers.close()
    return ended


def status_of(result: Result) -> Status:
    return result.status if isinstance(result, BuildFailure) else Status.OK


def test_a_good_batch_is_one_task() -> None:
    worker = Worker()
    assert set(statuses(worker, 4).values()) == {Status.OK}
    assert worker.tasks == [["s0", "s1", "s2", "s3"]]


def test_a_crash_is_halved_down_to_the_culprit_which_is_alone_when_it_is_blamed() -> None:
    worker, alone = Worker(crashes=["s2"]), Worker(crashes=["s2"])
    assert statuses(worker, 4, alone) == {
        0: Status.OK,
        1: Status.OK,
        2: Status.COMPILE_CRASH,
        3: Status.OK,
    }
    assert worker.tasks == [
        ["s0", "s1", "s2", "s3"],
        ["s0", "s1"],
        ["s2", "s3"],
        ["s2"],
        ["s3"],
    ]
    assert alone.tasks == [["s2"]]


def test_a_hang_is_a_timeout_of_the_culprit_alone() -> None:
    assert statuses(Worker(hangs=["s0"]), 2) == {0: Status.COMPILE_TIMEOUT, 1: Status.OK}


def test_a_program_has_the_time_of_all_its_kernels() -> None:
    """In its batch and alone: a large network is not the hang that a kernel of that time is."""
    program = ProgramJob(kernels=(job(0), job(1), job(2)), calls=(), buffers=2, target=SIM)
    worker, alone = Worker(hangs=["program"]), Worker()
    told: queue.SimpleQueue[Builds | BaseException] = queue.SimpleQueue()
    with closing(Workers([worker], lambda _: alone, timeout_seconds=2.0)) as workers:
        workers.submit([(1, program)], told.put)
        heard = told.get(timeout=30)
        workers.submit([(2, job(4)), (3, job(5))], told.put)
        told.get(timeout=30)
    assert isinstance(heard, Builds)
    assert isinstance(heard.builds[0].result, Artifact)
    assert worker.limits == [6.0, 4.0]
    assert alone.limits == [6.0]


def test_workers_that_die_under_a_job_are_not_its_crash_if_it_compiles_alone() -> None:
    worker, alone = Worker(crashes=["s0", "s1"]), Worker()
    assert statuses(worker, 2, alone) == {0: Status.OK, 1: Status.OK}
    assert alone.tasks == [["s0"], ["s1"]]


def test_a_batch_that_is_lost_is_given_again_whole() -> None:
    worker, alone = Worker(lost=["s0"], times=2), Worker()
    assert statuses(worker, 2, alone) == {0: Status.OK, 1: Status.OK}
    assert worker.tasks == [["s0", "s1"]] * 3
    assert not alone.tasks


def test_jobs_of_a_batch_that_is_lost_again_and_again_are_compiled_one_by_one() -> None:
    worker, alone = Worker(lost=["s0"]), Worker()
    assert statuses(worker, 2, alone) == {0: Status.OK, 1: Status.OK}
    assert alone.tasks == [["s0"], ["s1"]]


def test_a_place_that_was_killed_takes_no_task() -> None:
    worker = Worker()
    patient = RetryingWorker(worker)
    patient.kill()
    with pytest.raises(WorkerLost):
        patient.compile([job(1)], 60.0)
    assert not worker.tasks


def test_what_is_killed_from_outside_even_alone_is_nobodys_crash() -> None:
    worker = Worker(lost=["s0"])
    assert statuses(worker, 2) == {0: Status.INFRA_ERROR, 1: Status.OK}


def test_a_broken_place_is_told() -> None:
    told: queue.SimpleQueue[Builds | BaseException] = queue.SimpleQueue()
    broken = Worker(broken=InfraError("no cluster"))
    workers = Workers([broken], lambda _: broken, timeout_seconds=1.0)
    workers.submit([(1, job(1))], told.put)
    assert isinstance(told.get(timeout=30), InfraError)
    workers.close()


def test_a_process_answers_a_bad_schedule_with_a_typed_failure(tmp_path: Path) -> None:
    worker = ProcessWorker(tmp_path / "log", tmp_path)
    (result,) = worker.compile([job(1)], 60.0)
    worker.close()
    assert isinstance(result, BuildFailure)
    assert result.status is Status.COMPILE_ERROR


@pytest.mark.parametrize(
    ("number", "means"), [(signal.SIGSEGV, WorkerCrashed), (signal.SIGKILL, WorkerLost)]
)
def test_a_signal_tells_a_crash_from_a_kill_and_the_next_call_starts_another(
    tmp_path: Path, number: signal.Signals, means: type[Exception]
) -> None:
    worker = ProcessWorker(tmp_path / "log", tmp_path)
    worker.compile([job(1)], 60.0)
    assert worker.pid is not None
    os.kill(worker.pid, number)
    with pytest.raises(means, match=number.name):
        worker.compile([job(1)], 60.0)
    assert isinstance(worker.compile([job(1)], 60.0)[0], BuildFailure)
    worker.close()


def test_a_process_that_never_begins_ends_the_run_and_fails_no_job(tmp_path: Path) -> None:
    told: queue.SimpleQueue[Builds | BaseException] = queue.SimpleQueue()
    worker = ProcessWorker(tmp_path / "log", tmp_path, module="no.such.module")
    workers = Workers([worker], lambda _: worker, timeout_seconds=60.0)
    workers.submit([(1, job(1)), (2, job(2))], told.put)
    broken = told.get(timeout=60)
    workers.close()
    assert isinstance(broken, InfraError)
    assert broken.what == "the compile process ended before it began: exit code 1"
    assert "No module named 'no'" in (tmp_path / "log").read_text()


def test_a_process_that_somebody_stops_loses_its_task(tmp_path: Path) -> None:
    with closing(ProcessWorker(tmp_path / "log", tmp_path)) as worker:
        worker.compile([job(1)], 60.0)
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGSTOP)
        with pytest.raises(WorkerLost, match=r"it got \d\.\d s of a processor in"):
            worker.compile([job(1)], 0.05)
        assert worker.pid is None


def test_the_death_of_a_thread_is_told_to_all_who_wait_and_all_who_come() -> None:
    begun = threading.Event()

    class Unready(Worker):
        def prepare(self) -> None:
            begun.wait()
            raise ZeroDivisionError("nobody foresaw this")

    told: queue.SimpleQueue[Builds | BaseException] = queue.SimpleQueue()
    with closing(Workers([Unready()], lambda _: Worker(), timeout_seconds=1.0)) as workers:
        workers.submit([(1, job(1))], told.put)
        begun.set()
        assert isinstance(told.get(timeout=30), ZeroDivisionError)
        workers.submit([(2, job(2))], told.put)
        assert isinstance(told.get(timeout=30), ZeroDivisionError)
