"""What an event changes in a campaign: it moves one job, or all those of a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tilefarm.digest import Digest
from tilefarm.measurement import RunFailure, Status

from driver.search.alike import OVER, counted
from driver.search.campaign import Campaign
from driver.search.live import Job, Jobs, Stage
from driver.search.moves import (
    BuildFailed,
    Built,
    Command,
    Confirmed,
    DeviceLent,
    DeviceLost,
    DevicesGone,
    DeviceUp,
    Doubt,
    Drop,
    Event,
    Finish,
    Gathered,
    GiveUp,
    JobId,
    Measured,
    Outcome,
    Proposed,
    RunFailed,
    Spoiled,
    Stop,
    Tell,
)

_MEMORY: Final = 0.8
"""Weight of the past in running means of seconds."""

_UNKNOWN: Final = Digest.of(b"")


def heard(c: Campaign, event: Event) -> tuple[Campaign, list[Command]]:
    """What is true after an event, and what has to be said at once; begins nothing.

    Raises:
        ValueError: a job was proposed twice.
    """
    match event:
        case Proposed(jobs, tasks):
            return _proposed(c, jobs, tasks or ("",) * len(jobs)), []
        case Built(job, seconds) if _is(c, job, Stage.COMPILING):
            c = replace(c, build_seconds=_mean(c.build_seconds, seconds))
            return c.with_job(job, c.jobs[job].to(Stage.READY, "built")), []
        case BuildFailed(job, failure) if _is(c, job, Stage.COMPILING):
            return _close(c, job, failure, failure.status.value)
        case Measured(job, device, measurement, unconfirmed, seconds) if _runs_on(c, job, device):
            c = replace(c, run_seconds=_mean(c.run_seconds, seconds))
            return _close(_held(c, job, unconfirmed), job, measurement, "ok")
        case RunFailed(job, device, failure, unconfirmed) if _runs_on(c, job, device):
            if failure.status.is_farm_fault:
                return _strike(c, job, failure)
            return _close(_held(c, job, unconfirmed), job, failure, failure.status.value)
        case Confirmed(device):
            return replace(c, doubts=c.doubts.without(device)), []
        case Spoiled(device, jobs, why):
            held = {n: job for n, job in c.doubts.of(device).items() if n in jobs}
            return _doubt(replace(c, inquired=c.inquired - {device}), device, held, why)
        case Gathered():
            return replace(c, awaited=frozenset()), []
        case DeviceUp(device) if device not in c.devices:
            return _up(c, device), []
        case DeviceLost(device, why, job, suspect, perhaps):
            c, doubted = _doubt(c, device, c.doubts.of(device), why) if suspect else (c, [])
            doubts = c.doubts.without(device) if suspect else c.doubts.unasking(device)
            c = _part(replace(c, doubts=doubts), device, perhaps)
            c, struck = _lose(c, device, why, job)
            return c, doubted + struck
        case DeviceLent(device):
            return _without(replace(c, doubts=c.doubts.without(device)), device, "lent"), []
        case DevicesGone():
            return replace(c, jobs=Jobs(), finished=True), [*map(Drop, c.jobs), Finish("no device")]
        case Stop():
            return replace(c, stopping=True, awaited=frozenset(), inquired=frozenset()), []
        case _:
            return c, []


def _proposed(c: Campaign, jobs: tuple[JobId, ...], tasks: tuple[str, ...]) -> Campaign:
    if any(b <= a for a, b in zip((c.last_job, *jobs), jobs, strict=False)):
        raise ValueError(f"jobs {jobs} after job {c.last_job}: a number is used once, in order")
    return replace(
        c,
        jobs=c.jobs.with_({n: Job(task=task) for n, task in zip(jobs, tasks, strict=True)}),
        last_job=jobs[-1] if jobs else c.last_job,
        asking=False,
        dry=not jobs,
    )


def _mean(past: float | None, seconds: float) -> float:
    return _MEMORY * (seconds if past is None else past) + (1 - _MEMORY) * seconds


def _close(
    c: Campaign, number: JobId, outcome: Outcome, note: str
) -> tuple[Campaign, list[Command]]:
    job = c.jobs[number]
    jobs = c.jobs.without(number)
    told = Tell(number, outcome, (*job.story, note))
    c = replace(c, jobs=jobs, dry=False, streaks=counted(c.streaks, job.task, outcome))
    c, dropped = _give_up(c, job.task)
    return c, [told, *dropped]


def _give_up(c: Campaign, task: str) -> tuple[Campaign, list[Command]]:
    """Let go of a task when so many of its candidates, and no other ones, have failed alike."""
    streak = c.streaks[task]
    if not task or streak.count != c.windows.alike:
        return c, []
    hopeless = [
        n
        for n, job in c.jobs.items()
        if job.task == task and job.stage in (Stage.WAITING, Stage.READY)
    ]
    why = f"{streak.count} candidates and no other failed alike: {streak.cause}"
    c = replace(c, jobs=c.jobs.without(*hopeless), streaks={**c.streaks, task: OVER})
    return c, [*map(Drop, hopeless), GiveUp(task, why)]


def _strike(c: Campaign, number: JobId, failure: RunFailure) -> tuple[Campaign, list[Command]]:
    """The farm spoiled a run: try again elsewhere, unless it has been tried often enough."""
    job = c.jobs[number]
    strikes = (*job.strikes, job.device)
    if len(strikes) >= c.windows.attempts:
        return _close(c, number, failure, f"given up after {len(strikes)} runs: {failure.why}")
    note = f"{failure.status.value} on {job.device}"
    return c.with_job(number, replace(job.to(Stage.READY, note), strikes=strikes)), []


def _lose(c: Campaign, device: str, why: str, running: JobId) -> tuple[Campaign, list[Command]]:
    """Only the job that ran is struck; those queued behind it never began."""
    struck = running in c.jobs and c.jobs[running].device == device
    c = _without(c, device, "lost", but=running)
    if not struck:
        return c, []
    failure = RunFailure(artifact=_UNKNOWN, status=Status.DEVICE_LOST, why=why, device=device)
    return _strike(c, running, failure)


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


def _held(c: Campaign, number: JobId, unconfirmed: bool) -> Campaign:
    """Remember a job that ends now, until its device confirms it."""
    if not unconfirmed:
        return c
    job = c.jobs[number]
    return replace(c, doubts=c.doubts.holding(number, job.device, job))


def _up(c: Campaign, device: str) -> Campaign:
    return replace(
        c,
        devices=(*c.devices, device),
        doubts=c.doubts.unasking(device),
        awaited=c.awaited - {device},
    )


def _doubt(
    c: Campaign, device: str, held: Mapping[JobId, Job], why: str
) -> tuple[Campaign, list[Command]]:
    """What a device has not confirmed is measured again; of an earlier session, built again too."""
    if not held:
        return c, []
    again = {
        n: job.to(
            Stage.WAITING if job.stage is Stage.WAITING else Stage.READY,
            f"{device} was not right",
        )
        for n, job in held.items()
    }
    c = replace(c, jobs=c.jobs.with_(again), doubts=c.doubts.dropping(held))
    return c, [Doubt(tuple(held), why)]


def _is(c: Campaign, number: JobId, stage: Stage) -> bool:
    return number in c.jobs and c.jobs[number].stage is stage


def _runs_on(c: Campaign, number: JobId, device: str) -> bool:
    return _is(c, number, Stage.RUNNING) and c.jobs[number].device == device
