"""A kept compile once more, in a process of its own that cannot take more than it is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tilefarm.artifact import Artifact, ProgramJob
from tilefarm.errors import DataError
from tilefarm.measurement import Status
from tilefarm.plural import plural

from compile_worker.progress_file import LastStep, ProgressFile
from driver.farm.compiling.isolated_retry import ISOLATED_NBYTES
from driver.farm.compiling.reproducers import Reproducer, Reproducers
from driver.farm.compiling.worker import (
    CHILD,
    ProcessWorker,
    WorkerCrashed,
    WorkerLost,
    WorkerTimedOut,
)

if TYPE_CHECKING:
    from compile_worker.worker import Job

_LAST_LINES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayLimits:
    """What the process may take; seconds as `time_limit` counts them."""

    seconds: float = 30.0
    memory_nbytes: int = ISOLATED_NBYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """How the compile ended this time.

    Attributes:
        status: OK, or what failed.
        why: of a failure, the reason; of a good one, what was made.
        stage: the step that did not end; empty when all did.
        last: the last step that ended, with the IR it left.
        said: the last lines that the process printed.
    """

    status: Status
    why: str
    stage: str
    last: LastStep
    said: tuple[str, ...] = ()


def replay(job: Job, limits: ReplayLimits, scratch: Path, *, module: str = CHILD) -> ReplayResult:
    """Compile a job in a child process with limits.

    Args:
        job: what to compile.
        limits: of the process.
        scratch: a folder of its own.
        module: the child's program.
    """
    trail, log = ProgressFile(scratch / "trail"), scratch / "log"
    worker = ProcessWorker(
        log, scratch, memory_nbytes=limits.memory_nbytes, module=module, trail=trail.path
    )
    try:
        result = worker.compile([job], limits.seconds)[0]
    except WorkerCrashed as crash:
        return _died(Status.COMPILE_CRASH, str(crash), trail.read(), log)
    except WorkerTimedOut as hang:
        return _died(Status.COMPILE_TIMEOUT, str(hang), trail.read(), log)
    except WorkerLost as loss:
        return _died(Status.INFRA_ERROR, str(loss), trail.read(), log)
    finally:
        worker.close()
    last = trail.read()
    if isinstance(result, Artifact):
        nbytes = plural(len(result.code), "byte")
        made = f"{nbytes}, {result.digest.short}, in {result.build_seconds:.3f} s"
        return ReplayResult(status=Status.OK, why=made, stage="", last=last)
    stage = last.next if result.status is Status.COMPILE_CRASH and last.name else result.stage
    return ReplayResult(status=result.status, why=result.why, stage=stage, last=last)


def _died(status: Status, why: str, last: LastStep, log: Path) -> ReplayResult:
    said = tuple(log.read_text(errors="replace").splitlines()[-_LAST_LINES:])
    return ReplayResult(status=status, why=why, stage=last.next, last=last, said=said)


def kept_compile(digest: str, folders: Sequence[Path]) -> Reproducer:
    """The one kept compile in these folders whose digest, or its job's, begins so.

    A failure goes before the same job kept as good.

    Raises:
        DataError: there is none, or several jobs match; the message lists what there is.
    """
    found = [kept for folder in folders for kept in Reproducers(folder).find(digest)]
    jobs = {kept.job.digest for kept in found}
    if len(jobs) == 1:
        return min(found, key=lambda kept: kept.status is Status.OK)
    where = ", ".join(map(str, folders)) or "no folder of a run"
    if jobs:
        names = ", ".join(sorted(job.short for job in jobs))
        raise DataError(f"{digest}: the digest of several compiles: {names}", "give more digits")
    raise DataError(
        f"{digest}: no such compile is kept (looked in {where})",
        "`tilefarm replay` lists what there is; --out DIR names the folder of a run",
    )


def rows(folders: Sequence[Path]) -> Iterator[tuple[str, ...]]:
    """A row for each kept compile: digest, job, status, what it compiles."""
    for folder in folders:
        for kept in Reproducers(folder):
            yield kept.digest.short, kept.job.digest.short, kept.status.value, title(kept.job)


def title(job: Job) -> str:
    """What a job compiles, in words."""
    if isinstance(job, ProgramJob):
        return f"program {job.entry} of {plural(len(job.kernels), 'kernel')}"
    return f"{job.workload.name}, {plural(len(job.trace.steps), 'step')}, {job.target.name}"
