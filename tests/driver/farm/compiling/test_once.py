"""Jobs that must compile: their artifacts in order, or words on what to do."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from kit.search.stand_ins import SIM, toy_workload
from tilefarm.artifact import Artifact, BuildFailure, CompileJob
from tilefarm.errors import FarmFault, InfraError, SettingsError
from tilefarm.measurement import Status
from tilefarm.trace import Trace

from compile_worker.passes.flatten import STACK_LIMIT
from compile_worker.worker import Job
from driver.farm.compiling.executor import Build, Builds, Deliver
from driver.farm.compiling.once import compiled

JOBS = [
    CompileJob(workload=toy_workload(), trace=Trace(), target=SIM, symbol=name) for name in "ab"
]


class Ending:
    """An executor whose jobs end so, the last one first; None: well."""

    def __init__(self, status: Status | None, constraint: str = "") -> None:
        self._status = status
        self._constraint = constraint

    def submit(self, batch: Sequence[tuple[int, Job]], deliver: Deliver) -> None:
        for number, job in reversed(batch):
            deliver(Builds((self._build(number, job),)))

    def close(self) -> None:
        pass

    def _build(self, number: int, job: Job) -> Build:
        result: Artifact | BuildFailure = Artifact(
            job=job.digest, code=b"", symbols=(), build_seconds=0.0
        )
        if self._status is not None:
            result = BuildFailure(
                job=job.digest,
                status=self._status,
                stage="compile",
                why="no answer within 30 s",
                constraint=self._constraint,
            )
        return Build(
            number=number, result=result, lane="compile 1", began_seconds=0.0, ended_seconds=1.0
        )


def test_artifacts_are_in_the_order_of_their_jobs() -> None:
    assert [each.job for each in compiled(Ending(None), JOBS)] == [job.digest for job in JOBS]


def test_a_limit_that_is_too_short_is_the_user_s_to_change() -> None:
    with pytest.raises(SettingsError, match="compile_timeout in compile: no answer") as caught:
        compiled(Ending(Status.COMPILE_TIMEOUT), JOBS)
    assert "--compile-timeout" in str(caught.value.hint)


def test_what_does_not_fit_the_stack_is_the_user_s_to_change() -> None:
    with pytest.raises(SettingsError, match="compile_error in compile") as caught:
        compiled(Ending(Status.COMPILE_ERROR, STACK_LIMIT), JOBS)
    assert "its buffer within a loop" in str(caught.value.hint)


def test_a_compiler_that_crashes_is_a_fault() -> None:
    with pytest.raises(FarmFault) as caught:
        compiled(Ending(Status.COMPILE_CRASH), JOBS)
    assert isinstance(caught.value, InfraError)
