"""Compiles that crash or hang: typed, kept with their IR, and the others of the batch survive."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.children.bad_compiler import AFTER
from kit.kernels.nests import EXAMPLES, SIM
from tilefarm.artifact import Artifact, BuildFailure, Call, CompileJob, ProgramJob
from tilefarm.errors import DataError
from tilefarm.measurement import Status
from tilefarm.trace import Step, Trace

from compile_worker.ir.parser import parse
from compile_worker.machines.known import MACHINES
from compile_worker.progress_file import LastStep, ProgressFile
from compile_worker.worker import Result
from driver.farm.compiling.executor import Builds, Workers
from driver.farm.compiling.job_json import job_document, job_from_document
from driver.farm.compiling.replaying import ReplayLimits, kept_compile, replay
from driver.farm.compiling.reproducers import Reproducer, Reproducers
from driver.farm.compiling.worker import ProcessWorker

ROOT = Path(__file__).resolve().parents[2]
PASSES = [step.name for step in MACHINES["cpu"].passes]
NEXT = PASSES[PASSES.index(AFTER) + 1]


def job(name: str) -> CompileJob:
    return CompileJob(workload=EXAMPLES[name], trace=Trace(), target=SIM)


@pytest.fixture
def bad_compiler(monkeypatch: pytest.MonkeyPatch) -> str:
    """A module for compile processes that abort on `add` and hang on `relayout`."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT, ROOT.parent))))
    return "kit.children.bad_compiler"


def compiled(
    batch: list[str], kept: Reproducers, scratch: Path, module: str, timeout_seconds: float
) -> dict[str, Result]:
    """What becomes of one batch in a child process."""

    def worker(trail: Path | None = None) -> ProcessWorker:
        return ProcessWorker(scratch / "log", scratch, module=module, trail=trail)

    workers = Workers([worker()], worker, timeout_seconds=timeout_seconds, kept=kept)
    told: queue.SimpleQueue[Builds | BaseException] = queue.SimpleQueue()
    workers.submit([(n, job(name)) for n, name in enumerate(batch)], told.put)
    results: dict[str, Result] = {}
    while len(results) < len(batch):
        heard = told.get(timeout=60)
        assert isinstance(heard, Builds), heard
        results.update({batch[build.number]: build.result for build in heard.builds})
    workers.close()
    return results


def check_kept(failure: Result, status: Status, name: str, kept: Reproducers) -> None:
    """A failure after `AFTER`, kept as the only one, with what that pass left."""
    assert isinstance(failure, BuildFailure)
    assert (failure.status, failure.stage) == (status, NEXT)
    assert failure.kept is not None
    (record,) = kept
    assert (record.digest, record.job, record.status) == (failure.kept, job(name), status)
    assert record.last.name == AFTER
    assert parse(record.last.ir).name == job(name).workload.name


def test_the_others_of_a_batch_survive_a_crash_and_the_culprit_is_kept(
    tmp_path: Path, bad_compiler: str
) -> None:
    folder = tmp_path / "kept"
    kept = Reproducers(folder)
    results = compiled(["affine", "add", "softmax"], kept, tmp_path, bad_compiler, 60.0)
    assert isinstance(results["affine"], Artifact)
    assert isinstance(results["softmax"], Artifact)
    check_kept(results["add"], Status.COMPILE_CRASH, "add", kept)
    assert [file.suffix for file in folder.iterdir()] == [".json"], "no trail is left"


def test_a_hang_is_kept(tmp_path: Path, bad_compiler: str) -> None:
    kept = Reproducers(tmp_path / "kept")
    results = compiled(["relayout"], kept, tmp_path, bad_compiler, 5.0)
    check_kept(results["relayout"], Status.COMPILE_TIMEOUT, "relayout", kept)


def test_a_crash_repeats_in_a_replay(tmp_path: Path, bad_compiler: str) -> None:
    verdict = replay(job("add"), ReplayLimits(), tmp_path, module=bad_compiler)
    assert verdict.status is Status.COMPILE_CRASH
    assert "SIGABRT" in verdict.why
    assert (verdict.last.name, verdict.stage) == (AFTER, NEXT)
    assert verdict.said[-1] == "the compiler says its last words"


def test_a_hang_ends_with_its_time(tmp_path: Path, bad_compiler: str) -> None:
    verdict = replay(job("relayout"), ReplayLimits(seconds=5.0), tmp_path, module=bad_compiler)
    assert verdict.status is Status.COMPILE_TIMEOUT
    assert (verdict.last.name, verdict.stage) == (AFTER, NEXT)


def test_a_good_compile_says_what_it_made(tmp_path: Path) -> None:
    verdict = replay(job("add"), ReplayLimits(), tmp_path)
    assert (verdict.status, verdict.stage, verdict.last.name) == (Status.OK, "", PASSES[-1])


def test_too_little_memory_is_a_failure_and_no_harm(tmp_path: Path) -> None:
    verdict = replay(job("add"), ReplayLimits(memory_nbytes=1 << 20), tmp_path)
    assert verdict.status is Status.COMPILE_CRASH


def test_a_refused_schedule_names_its_stage(tmp_path: Path) -> None:
    bad = CompileJob(workload=EXAMPLES["add"], trace=Trace((Step("nosuch"),)), target=SIM)
    verdict = replay(bad, ReplayLimits(), tmp_path)
    assert (verdict.status, verdict.stage) == (Status.COMPILE_ERROR, "ScheduleError")
    assert verdict.last.name == "nest"


PROGRAM = ProgramJob(
    kernels=(job("add"), job("affine")),
    calls=(Call(kernel="kernel", arguments=((0, 0), (1, 64), (2, 0))),),
    buffers=3,
    target=SIM,
)


@pytest.mark.parametrize("kept", [job("add"), job("conv2d"), PROGRAM], ids=["add", "conv", "net"])
def test_jobs_are_documents_and_back(kept: CompileJob | ProgramJob) -> None:
    made = job_from_document(job_document(kept))
    assert made == kept
    assert made.digest == kept.digest


def test_records_are_found_by_their_digest_and_their_jobs(tmp_path: Path) -> None:
    folder = Reproducers(tmp_path)
    bad = Reproducer(
        job=job("add"), status=Status.COMPILE_CRASH, why="gone", last=LastStep("flatten", "text")
    )
    good = Reproducer(job=job("add"), status=Status.OK)
    for record in (good, bad, bad):
        folder.keep(record)
    folder.keep(Reproducer(job=job("affine"), status=Status.OK))
    assert len(list(folder)) == 3
    assert kept_compile(good.digest.hex, [tmp_path]) == good
    assert kept_compile(bad.digest.short, [tmp_path]) == bad
    assert kept_compile(bad.job.digest.short, [tmp_path]) == bad, "a failure goes first"


def of_nothing(folder: Path) -> str:
    return "00"


def of_two_jobs(folder: Path) -> str:
    for name in ("add", "affine"):
        Reproducers(folder).keep(Reproducer(job=job(name), status=Status.OK))
    return ""


def of_a_changed_file(folder: Path) -> str:
    digest = Reproducers(folder).keep(Reproducer(job=job("add"), status=Status.OK))
    (folder / f"{digest.hex}.json").write_text("{}")
    return digest.hex


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (of_nothing, "no such compile is kept"),
        (of_two_jobs, "the digest of several compiles"),
        (of_a_changed_file, "not a kept compile"),
    ],
)
def test_what_cannot_be_found_is_told(
    tmp_path: Path, spoil: Callable[[Path], str], why: str
) -> None:
    with pytest.raises(DataError, match=why):
        kept_compile(spoil(tmp_path), [tmp_path])


def test_a_trail_that_cannot_be_written_is_no_trail(tmp_path: Path) -> None:
    nowhere = tmp_path / "nosuch" / "trail"
    worker = ProcessWorker(tmp_path / "log", tmp_path, trail=nowhere)
    (made,) = worker.compile([job("add")], 60.0)
    worker.close()
    assert isinstance(made, Artifact)
    assert ProgressFile(nowhere).read() == LastStep()


def test_a_process_that_grew_old_is_followed_by_another(tmp_path: Path) -> None:
    worker = ProcessWorker(tmp_path / "log", tmp_path, compiles=2)
    pids = []
    for _ in range(3):
        worker.compile([job("add")], 60.0)
        pids.append(worker.pid)
    worker.close()
    assert pids[0] == pids[1] != pids[2]
