"""What an event changes in a campaign: it moves one job, or all those of a device."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tilefarm.artifact import BuildFailure
from tilefarm.digest import Digest
from tilefarm.measurement import RunFailure, Status
from tilefarm.plural import plural

from driver.campaign.campaign import Campaign
from driver.campaign.commands import Command, EndCampaign, Repeat, Tell
from driver.campaign.events import (
    BuildFailed,
    Built,
    DevicesGone,
    Event,
    JobId,
    Outcome,
    Proposed,
    Stop,
)
from driver.campaign.live import Jobs, JobStage, JobState
from driver.farm.device_messages import Confirmed, DeviceLent, DeviceLost, DeviceUp, RunEnded

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
        case Built(job, seconds) if _is(c, job, JobStage.COMPILING):
            c = replace(c, build_seconds=_mean(c.build_seconds, seconds))
            return c.with_job(job, c.jobs[job].to(JobStage.READY, "built")), []
        case BuildFailed(job, failure) if _is(c, job, JobStage.COMPILING):
            if failure.status.is_farm_fault:
                return _strike(c, job, failure, by=_A_WORKER, again=JobStage.WAITING)
            return _close(c, job, failure, failure.status.value)
        case RunEnded(number=number, device=device) if _runs_on(c, number, device):
            c, told = _ran(c, event)
            c, more = (c, []) if event.unchecked else _confirmed(c, device)
            return c, told + more
        case Confirmed(device):
            return _confirmed(c, device)
        case DeviceUp() if event.device not in c.devices:
            return replace(c, devices=(*c.devices, event.device)), []
        case DeviceLost(device, why, job, perhaps):
            c, repeat = _repeat(c, device, why)
            c, struck = _lose(_part(c, device, perhaps), device, why, job)
            return c, repeat + struck
        case DeviceLent(device):
            c, repeat = _repeat(c, device, "it was lent")
            return _without(c, device, "lent"), repeat
        case DevicesGone():
            return replace(c, jobs=Jobs(), confirming=frozenset(), finished=True), [
                EndCampaign("no device")
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
        jobs=c.jobs.with_({n: JobState() for n in jobs}),
        last_job=jobs[-1] if jobs else c.last_job,
        asking=False,
        dry=not jobs,
        asks_again=not jobs and bool(c.jobs),
    )


def _mean(past: float | None, seconds: float) -> float:
    return _MEMORY * (seconds if past is None else past) + (1 - _MEMORY) * seconds


def _ran(c: Campaign, ended: RunEnded) -> tuple[Campaign, list[Command]]:
    """A job has ended if its device was right; until that is known it is held."""
    number, result = ended.number, ended.result
    job = c.jobs[number]
    if isinstance(result, RunFailure):
        if ended.is_spoiled:
            return _strike(c, number, result, by=ended.device)
        if result.status is Status.RUN_TIMEOUT and not job.alone:
            return _once_more(c, number), []
        note = result.status.value
    else:
        c = replace(c, run_seconds=_mean(c.run_seconds, ended.seconds))
        note = "ok"
    held = job.to(JobStage.HELD, note, device=job.device, outcome=result)
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
    again = {n: c.jobs[n].to(JobStage.READY, f"{device} has not confirmed it") for n in numbers}
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
    again = job.to(JobStage.READY, f"{Status.RUN_TIMEOUT.value} on {job.device}")
    return c.with_job(number, replace(again, alone=True))


def _strike(
    c: Campaign,
    number: JobId,
    failure: BuildFailure | RunFailure,
    *,
    by: str,
    again: JobStage = JobStage.READY,
) -> tuple[Campaign, list[Command]]:
    """The farm spoiled a run or a compile: again, unless that has been tried often enough."""
    job = c.jobs[number]
    strikes = (*job.strikes, by)
    if len(strikes) >= c.limits.attempts:
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
        c = c.with_job(number, c.jobs[number].to(JobStage.READY, f"{device} {how} before its turn"))
    return c


def _is(c: Campaign, number: JobId, stage: JobStage) -> bool:
    return number in c.jobs and c.jobs[number].stage is stage


def _runs_on(c: Campaign, number: JobId, device: str) -> bool:
    return _is(c, number, JobStage.RUNNING) and c.jobs[number].device == device
