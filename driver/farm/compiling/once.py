"""A few jobs compiled and waited for, outside of a search."""

from __future__ import annotations

import queue
from collections.abc import Sequence

from tilefarm.artifact import Artifact, CompileJob, ProgramJob
from tilefarm.errors import InfraError, SettingsError
from tilefarm.measurement import Status

from compile_worker.passes.flatten import STACK_LIMIT
from driver.farm.compiling.executor import Build, Builds, Executor


def compiled(executor: Executor, jobs: Sequence[CompileJob | ProgramJob]) -> list[Artifact]:
    """The artifacts of jobs that must compile, in their order.

    Raises:
        InfraError: one does not.
        SettingsError: one takes longer than its limit, or more than the stack has.
        FarmFault: compiling is not possible any more.
    """
    told: queue.SimpleQueue[Builds | BaseException] = queue.SimpleQueue()
    executor.submit([*enumerate(jobs)], told.put)
    builds: dict[int, Build] = {}
    while len(builds) < len(jobs):
        heard = told.get()
        if isinstance(heard, BaseException):
            raise heard
        builds |= {build.number: build for build in heard.builds}
    return [_artifact(builds[number]) for number in range(len(jobs))]


def _artifact(build: Build) -> Artifact:
    if isinstance(build.result, Artifact):
        return build.result
    failure = build.result
    what = f"the program does not compile: {failure.status.value} in {failure.stage}: {failure.why}"
    if failure.status is Status.COMPILE_TIMEOUT:
        raise SettingsError(what, "more time for each kernel: --compile-timeout; fewer --workers")
    if failure.constraint == STACK_LIMIT:
        hint = "a script that keeps less at a time: its buffer within a loop, or fewer elements"
        raise SettingsError(what, hint)
    raise InfraError(what)
