"""What an event changes in a campaign: it moves one job, or all those of a device."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tilefarm.artifact import BuildFailure
from tilefarm.digest import Digest
from tilefarm.measurement import RunFailure, Status, is_spoiled
from tilefarm.plural import plural

from driver.campaign.campaign import Campaign
from driver.campaign.commands import Command, Finish, Repeat, Tell
from driver.campaign.events import (
    BuildFailed,
    Built,
    Confirmed,
    DeviceLent,
    DeviceLost,
    DevicesGone,
    DeviceUp,
    Event,
    JobId,
    Measured,
    Outcome,
    Proposed,
    RunFailed,
    Stop,
)
from driver.campaign.live import Job, Jobs, Stage

_MEMORY: Final = 0.8
"""Weight of the past in running means of seconds."""

_UNKNOWN: Final = Digest.of(b"")
_A_WORKER: Final = "a worker"


def heard(c: Campaign, event: Event) -> tuple[Campaign, list[Command]]:
    """What is true after an event, and what has to be said at once; begins nothing.

    Raises:
        ValueError: a job was proposed twice.
    """
    match event:
        case Proposed(jobs):
            return _proposed(c, jobs), []
        case Built(job, seconds) if _is(c, job, Stage.COMPILING):
            c = replace(c, build_seconds=_mean(c.build_seconds, seconds))
            return c.with_job(job, c.jobs[job].to(Stage.READY, "built")), []
        case BuildFailed(job, failure) if _is(c, job, Stage.COMPILING):
            if failure.status.is_farm_fault:
                return _strike(c, job, failure, by=_A_WORKER, again=Stage.WAITING)
            return _close(c, job, failure, failure.status.value)
        case Measured(job, device, measurement, provisional, seconds) if _runs_on(c, job, device):
            c = replace(c, run_seconds=_mean(c.run_seconds, seconds))
            return _ran(c, job, measurement, "ok", provisional)
        case RunFailed(job, device, failure, provisional) if _runs_on(c, job, device):
            if is_spoiled(failure):
                return _strike(c, job, failure, by=device)
            if failure.status is Status.RUN_TIMEOUT and not c.jobs[job].alone:
                return _once_more(c, job), []
            return _ran(c, job, failure, failure.status.value, provisional)
        case Confirmed(device):
            return _confirmed(c, device)
        case DeviceUp(device) if device not in c.devices:
            return replace(c, devices=(*c.devices, device)), []
        case DeviceLost(device, why, job, perhaps):
            c, repeat = _repeat(c, device, why)
            c, struck = _lose(_part(c, device, perhaps), device, why, job)
            return c, repeat + struck
        case DeviceLent(device):
            c, repeat = _repeat(c, device, "it was lent")
            return _without(c, device, "lent"), repeat
        case DevicesGone():
            return replace(c, jobs=Jobs(), confirming=frozenset(), finished=True), [
                Finish("no device")
            ]
        case Stop():
            return replace(c, stopping=True), []
        case _:
            return c, []


def _proposed(c: Campaign, jobs: tuple[JobId, ...]) -> Campaign:
    if any(b <= a for a, b in zip((c.last_job, *jobs), jobs, strict=False)):
        raise ValueError(f"jobs {jobs} after job {c.last_job}: a number is used once, in order")
    return replace(
        c,
        jobs=c.jobs.with_({n: Job() for n in jobs}),
        last_job=jobs[-1] if jobs else c.last_job,
        asking=False,
        dry=not jobs,
    )


def _mean(past: float | None, seconds: float) -> float:
    return _MEMORY * (seconds if past is None else past) + (1 - _MEMORY) * seconds


def _ran(
    c: Campaign, number: JobId, outcome: Outcome, note: str, provisional: bool
) -> tuple[Campaign, list[Command]]:
    """A job has ended if its device was right; until that is known it is held."""
    if not provisional:
        return _close(c, number, outcome, note)
    job = c.jobs[number]
    held = job.to(Stage.HELD, note, device=job.device, outcome=outcome)
    return c.with_job(number, held), []


def _confirmed(c: Campaign, device: str) -> tuple[Campaign, list[Command]]:
    """What a device has given was right."""
    numbers = c.jobs.held.get(device, ())
    told: list[Command] = [
        Tell(n, job.outcome, job.story) for n in numbers if (job := c.jobs[n]).outcome is not None
    ]
    return _unasked(replace(c, jobs=c.jobs.without(*numbers)), device), told


def _repeat(c: Campaign, device: str, why: str) -> tuple[Campaign, list[Command]]:
    """What a device has given and will not confirm is measured again."""
    numbers = c.jobs.held.get(device, ())
    again = {n: c.jobs[n].to(Stage.READY, f"{device} has not confirmed it") for n in numbers}
    c = _unasked(replace(c, jobs=c.jobs.with_(again)), device)
    return c, [Repeat(numbers, why)] if numbers else []


def _unasked(c: Campaign, device: str) -> Campaign:
    return replace(c, confirming=c.confirming - {device})


def _close(
    c: Campaign, number: JobId, outcome: Outcome, note: str
) -> tuple[Campaign, list[Command]]:
    told = Tell(number, outcome, (*c.jobs[number].story, note))
    return replace(c, jobs=c.jobs.without(number)), [told]


def _once_more(c: Campaign, number: JobId) -> Campaign:
    """A run that had no end in time is repeated by itself: a busy host is late, but not twice."""
    job = c.jobs[number]
    again = job.to(Stage.READY, f"{Status.RUN_TIMEOUT.value} on {job.device}")
    return c.with_job(number, replace(again, alone=True))


def _strike(
    c: Campaign,
    number: JobId,
    failure: BuildFailure | RunFailure,
    *,
    by: str,
    again: Stage = Stage.READY,
) -> tuple[Campaign, list[Command]]:
    """The farm spoiled a run or a compile: again, unless that has been tried often enough."""
    job = c.jobs[number]
    strikes = (*job.strikes, by)
    if len(strikes) >= c.windows.attempts:
        tries = plural(len(strikes), "try", "tries")
        return _close(c, number, failure, f"given up after {tries}: {failure.why}")
    note = f"{failure.status.value} on {by}"
    return c.with_job(number, replace(job.to(again, note), strikes=strikes)), []


def _lose(c: Campaign, device: str, why: str, running: JobId) -> tuple[Campaign, list[Command]]:
    """Only the job that ran is struck; those queued behind it never began."""
    struck = running in c.jobs and c.jobs[running].device == device
    c = _without(c, device, "lost", but=running)
    if not struck:
        return c, []
    failure = RunFailure(artifact=_UNKNOWN, status=Status.DEVICE_LOST, why=why, device=device)
    return _strike(c, running, failure, by=device)


def _part(c: Campaign, device: str, jobs: tuple[JobId, ...]) -> Campaign:
    """One of these jobs may have cost a device: from now on it is seen which."""
    held = {n: c.jobs[n] for n in jobs if _runs_on(c, n, device)}
    return replace(c, jobs=c.jobs.with_({n: replace(j, alone=True) for n, j in held.items()}))


def _without(c: Campaign, device: str, how: str, *, but: JobId = 0) -> Campaign:
    """A device is not there any more; the jobs that it has not begun are as ready as before."""
    c = replace(c, devices=tuple(d for d in c.devices if d != device))
    for number in [n for n, job in c.jobs.items() if job.device == device and n != but]:
        c = c.with_job(number, c.jobs[number].to(Stage.READY, f"{device} {how} before its turn"))
    return c


def _is(c: Campaign, number: JobId, stage: Stage) -> bool:
    return number in c.jobs and c.jobs[number].stage is stage


def _runs_on(c: Campaign, number: JobId, device: str) -> bool:
    return _is(c, number, Stage.RUNNING) and c.jobs[number].device == device
