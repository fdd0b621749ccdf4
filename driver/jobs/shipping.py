"""A job on its way to a cluster and back, as the user's machine sees it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tilefarm.clock import Clock, SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import CapacityError, InfraError, SettingsError
from tilefarm.interpreter import python_command

from driver.jobs.bundle import packed, unpack
from driver.jobs.dashboard import Dashboard, UnreadyError
from driver.jobs.responses import Cluster, RayJob
from driver.jobs.spec import JobSpec
from driver.jobs.transfer import content_of

PACKAGE_NBYTES: Final = 100 << 20
"""The most that a dashboard takes in one call."""

COMMAND_NBYTES: Final = 100 << 10
"""The most that a job's command may be: Linux starts no shell with one of 128 KiB."""

RUN_KEY: Final = "tilefarm_run"
"""In the metadata of a job: the name of its run."""

TITLE_KEY: Final = "tilefarm_model"
_FOLDER_KEY: Final = "tilefarm_folder"
_PYTHON_KEY: Final = "tilefarm_python"
AGENT_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.5
_FETCH_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A job that was submitted; `uploaded_nbytes` is 0 if its files were on the cluster already."""

    id: str
    run: str
    uploaded_nbytes: int


def send(
    dashboard: Dashboard,
    spec: JobSpec,
    files: Mapping[Digest, Path],
    *,
    job: str,
    folder: str,
    python: str,
    clock: Clock | None = None,
    say: Callable[[str], None] | None = None,
) -> Sent:
    """Upload what the cluster lacks, and start the job.

    Args:
        dashboard: of the cluster.
        spec: what is to be done.
        files: its files by digest.
        job: its name, new on that cluster.
        folder: on the cluster, for the runs of all jobs.
        python: on the cluster, the interpreter that tilefarm is installed for.
        clock: for waiting.
        say: hears what is waited for; None: nobody does.

    Raises:
        CapacityError: the files are more than a dashboard takes, or too many.
        DataError: a file cannot be read.
        UnreachableError, AccessError, InfraError: see `Dashboard`.
    """
    command = job_command(python, "run", folder, spec.to_json())
    if len(command.encode()) > COMMAND_NBYTES:
        raise CapacityError(
            f"{spec.title} has its weights in {len(spec.beside)} files, which are too many to name",
            "save it with all weights in one file: onnx.save_model(model, path,"
            " save_as_external_data=True, all_tensors_to_one_file=True)",
        )
    try:
        content = packed({digest.hex: path for digest, path in files.items()}, PACKAGE_NBYTES)
    except CapacityError as refusal:
        raise CapacityError(
            f"model and data are {refusal.what}; a Ray dashboard takes no more",
            "calibrate and evaluate with fewer samples, or `tilefarm tune --ray` on the cluster",
        ) from None
    package = f"_ray_pkg_{Digest.of(content).hex}.zip"
    known = dashboard.holds(package)
    if not known:
        dashboard.upload(package, content)
    metadata = {
        RUN_KEY: spec.run,
        TITLE_KEY: spec.title,
        _FOLDER_KEY: folder,
        _PYTHON_KEY: python,
    }
    start = partial(dashboard.submit, job, command, package=package, metadata=metadata)
    _started(start, clock or SystemClock(), say)
    return Sent(id=job, run=spec.run, uploaded_nbytes=0 if known else len(content))


def interpreter(cluster: Cluster, chosen: str | None) -> str:
    """The interpreter of a cluster by its path: a shell there may find another one.

    Raises:
        SettingsError: the cluster does not say which, or the chosen one is no path.
    """
    python = chosen or cluster.python
    if not python.startswith("/"):
        raise SettingsError(
            f"--python {python}: not an absolute path"
            if python
            else "the cluster does not say where its Python is",
            "--python /opt/venv/bin/python, where tilefarm is installed there",
        )
    return python


def fetch(
    dashboard: Dashboard, job: RayJob, out: Path, *, fetch_job: str, clock: Clock
) -> list[Path]:
    """Bring what a job has made into a folder; the paths.

    Args:
        dashboard: of the cluster.
        job: one that has ended.
        out: the folder.
        fetch_job: the name of the job that brings it, new on that cluster.
        clock: for waiting.

    Raises:
        SettingsError: it still runs, or is none of ours.
        CorruptBlobError: what arrived is not what was sent.
        InfraError: the cluster cannot send it.
        OutputError: the folder cannot be written.
    """
    if not job.ended:
        raise SettingsError(
            f"{job.id} is {job.status}: its run is not over", f"`tilefarm logs {job.id} --follow`"
        )
    kept = job.metadata
    if RUN_KEY not in kept:
        raise SettingsError(f"{job.id} is no job of tilefarm's", "`tilefarm jobs` lists those")
    command = job_command(kept[_PYTHON_KEY], "send", kept[_FOLDER_KEY], kept[RUN_KEY])
    start = partial(dashboard.submit, fetch_job, command, package=None, metadata={})
    _started(start, clock)
    try:
        log = _ended(dashboard, fetch_job, clock)
    finally:
        if dashboard.job(fetch_job).ended:
            dashboard.forget(fetch_job)
        else:
            dashboard.stop(fetch_job)
    digest, content = content_of(log)
    return unpack(content, digest, out)


def title_of(job: RayJob) -> str:
    """The model that a job tunes; empty if it is none of ours."""
    return job.metadata.get(TITLE_KEY, "")


def _started(
    start: Callable[[], None], clock: Clock, say: Callable[[str], None] | None = None
) -> None:
    """Start a job, on a cluster that may still be starting itself.

    Raises:
        InfraError: it is not ready for jobs in time.
    """
    until = clock.seconds() + AGENT_SECONDS
    told = False
    while True:
        try:
            return start()
        except UnreadyError as unready:
            if clock.seconds() >= until:
                raise InfraError(
                    f"{unready.what} (waited for {AGENT_SECONDS:g} s)",
                    "on its head, `ray status`, and dashboard_agent.log in Ray's folder of logs",
                ) from None
        if say and not told:
            say(f"waiting for the cluster's job agent, {AGENT_SECONDS:g} s at most")
        told = True
        clock.sleep(POLL_SECONDS)


def _ended(dashboard: Dashboard, fetch_job: str, clock: Clock) -> str:
    """The log of a job once it has ended well."""
    until = clock.seconds() + _FETCH_SECONDS
    while not (state := dashboard.job(fetch_job)).ended:
        if clock.seconds() > until:
            raise InfraError(
                f"the cluster did not send it within {_FETCH_SECONDS:g} s", "is the cluster busy?"
            )
        clock.sleep(POLL_SECONDS)
    log = dashboard.log(fetch_job)
    if state.status != "SUCCEEDED":
        raise InfraError(f"the cluster cannot send it: {last_line(log) or state.message}")
    return log


def last_line(log: str) -> str:
    """The last thing that a log says, without what to try."""
    lines = [line for line in log.splitlines() if line.strip() and not line.startswith("  try:")]
    return lines[-1].strip() if lines else ""


def job_command(interpreter: str, *words: str) -> str:
    """What a shell on the cluster runs."""
    return shlex.join(python_command("-m", "driver.cli", "job", *words, interpreter=interpreter))
