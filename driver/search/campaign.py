"""What to do next, as a pure function: events in, commands out; no clock, no threads, no farm.

    proposed ─► waiting ─► compiling ─► ready ─► running ─► told ─┐
                              │           ▲         │ farm's fault, fewer than `attempts` strikes
                              └─► told    ├─────────┘             │
                                          └───────────────────────┘ its device was not right

Builds and runs stream past each other: every event moves one job and then fills whatever window
has room, so a device never waits for a batch and a compile worker never waits for a device.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from tilefarm.digest import Digest
from tilefarm.measurement import RunFailure, Status

from driver.search.alike import OVER, Streak, counted
from driver.search.doubts import Doubts
from driver.search.live import Job, Jobs, Stage
from driver.search.moves import (
    Ask,
    BuildFailed,
    Built,
    Command,
    Compile,
    Confirm,
    Confirmed,
    DeviceLent,
    DeviceLost,
    DevicesGone,
    DeviceUp,
    Doubt,
    Drop,
    Event,
    Finish,
    GiveUp,
    JobId,
    Measure,
    Measured,
    Outcome,
    Proposed,
    RunFailed,
    Stop,
    Tell,
)

BATCH_SECONDS: Final = 0.25
"""A compile task shorter than this costs more in handling than it saves in latency."""

ASK_MOST: Final = 64
"""Proposals in one answer: with many devices, the first must not wait for thousands of others."""

_MEMORY: Final = 0.8
"""Weight of the past in the running mean of build seconds."""

_UNKNOWN: Final = Digest.of(b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """How much may be under way at once.

    Attributes:
        workers: compile tasks that run at the same time; one more is queued so that none idles.
        compile_ahead: candidates per device that are proposed but not yet on a device.
        run_ahead: candidates that a device holds, the running one included.
        attempts: runs of one candidate that the farm may spoil before it is given up.
        batch_limit: candidates in one compile task at most.
        alike: failures of one task for one cause, and nothing else, after which it is given up.
    """

    workers: int = 2
    compile_ahead: int = 4
    run_ahead: int = 2
    attempts: int = 3
    batch_limit: int = 16
    alike: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """The whole state of a search under way, as a value.

    Attributes:
        jobs: live jobs by number, oldest first.
        devices: names of the devices that are up.
        last_job: the highest number ever proposed.
        batches: compile tasks ever begun.
        build_seconds: running mean; None before the first build.
        streaks: how the candidates of each task have failed so far.
        doubts: jobs that were told, but not confirmed by their devices yet.
        asking: an `Ask` is unanswered.
        dry: the tuner had nothing when last asked; it is asked again after the next `Tell`.
        stopping: begin nothing new.
        finished: `Finish` was given.
    """

    windows: Windows = field(default_factory=Windows)
    jobs: Jobs = field(default_factory=Jobs)
    devices: tuple[str, ...] = ()
    last_job: JobId = 0
    batches: int = 0
    build_seconds: float | None = None
    streaks: Mapping[str, Streak] = field(default_factory=dict)
    doubts: Doubts[Job] = field(default_factory=Doubts)
    asking: bool = False
    dry: bool = False
    stopping: bool = False
    finished: bool = False

    @property
    def batch(self) -> int:
        """Candidates in a compile task that is worth its handling."""
        if not self.build_seconds:
            return 1
        return min(math.ceil(BATCH_SECONDS / self.build_seconds), self.windows.batch_limit)

    @property
    def window(self) -> int:
        """How many jobs may be proposed but not on a device."""
        ahead = self.windows.compile_ahead * max(1, len(self.devices))
        return max(ahead, self.windows.workers * self.batch)

    def violations(self) -> list[str]:
        """Broken promises in words; empty in every state that `step` can reach."""
        running = [(n, j) for n, j in self.jobs.items() if j.stage is Stage.RUNNING]
        broken = [
            f"job {n} runs on {j.device}: not up"
            for n, j in running
            if j.device not in self.devices
        ]
        broken += [
            f"{device} holds {self.jobs.load(device)} jobs"
            for device in self.devices
            if self.jobs.load(device) > self.windows.run_ahead
        ]
        broken += [
            f"job {n} has {len(j.strikes)} strikes"
            for n, j in self.jobs.items()
            if len(j.strikes) >= self.windows.attempts
        ]
        broken += [f"job {n} was never proposed" for n in self.jobs if n > self.last_job]
        if self.jobs.open_batches > self.windows.workers + 1:
            broken.append(f"{self.jobs.open_batches} compile tasks at once")
        if self.finished and self.jobs:
            broken.append("finished with live jobs")
        broken += [f"job {n} is told and live" for n in self.jobs if n in self.doubts]
        idle = [d for d in self.devices if self.jobs.load(d) == 0]
        if idle and self.jobs.at(Stage.READY) and not self.stopping:
            broken.append(f"{idle[0]} idles while jobs are ready")
        return broken


def step(campaign: Campaign, event: Event) -> tuple[Campaign, list[Command]]:
    """The next state, and what to do now, in order.

    Events about jobs that are not in the stage the event speaks of are late or doubled; they change
    nothing.

    Raises:
        ValueError: a job was proposed twice.
    """
    if campaign.finished:
        return campaign, []
    campaign, commands = _absorb(campaign, event)
    for fill in (_stop, _measure, _compile, _ask, _finish):
        campaign, more = fill(campaign)
        commands += more
    return campaign, commands


def _absorb(c: Campaign, event: Event) -> tuple[Campaign, list[Command]]:
    match event:
        case Proposed(jobs, tasks):
            return _proposed(c, jobs, tasks or ("",) * len(jobs)), []
        case Built(job, seconds) if _is(c, job, Stage.COMPILING):
            return _learn(_move(c, job, c.jobs[job].to(Stage.READY, "built")), seconds), []
        case BuildFailed(job, failure) if _is(c, job, Stage.COMPILING):
            return _close(c, job, failure, failure.status.value)
        case Measured(job, device, measurement, unconfirmed) if _runs_on(c, job, device):
            return _close(_held(c, job, unconfirmed), job, measurement, "ok")
        case RunFailed(job, device, failure, unconfirmed) if _runs_on(c, job, device):
            if failure.status.is_farm_fault:
                return _strike(c, job, failure)
            return _close(_held(c, job, unconfirmed), job, failure, failure.status.value)
        case Confirmed(device):
            return replace(c, doubts=c.doubts.without(device)), []
        case DeviceUp(device) if device not in c.devices:
            return replace(c, devices=(*c.devices, device)), []
        case DeviceLost(device, why, job, suspect):
            c, doubted = _doubt(c, device, why) if suspect else (c, [])
            doubts = c.doubts.without(device) if suspect else c.doubts.unasking(device)
            c, struck = _lose(replace(c, doubts=doubts), device, why, job)
            return c, doubted + struck
        case DeviceLent(device):
            return _without(replace(c, doubts=c.doubts.without(device)), device, "lent"), []
        case DevicesGone():
            return replace(c, jobs=Jobs(), finished=True), [*map(Drop, c.jobs), Finish("no device")]
        case Stop():
            return replace(c, stopping=True), []
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


def _learn(c: Campaign, seconds: float) -> Campaign:
    past = seconds if c.build_seconds is None else c.build_seconds
    return replace(c, build_seconds=_MEMORY * past + (1 - _MEMORY) * seconds)


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
    return _move(c, number, replace(job.to(Stage.READY, note), strikes=strikes)), []


def _lose(c: Campaign, device: str, why: str, running: JobId) -> tuple[Campaign, list[Command]]:
    """Only the job that ran is struck; those queued behind it never began."""
    struck = running in c.jobs and c.jobs[running].device == device
    c = _without(c, device, "lost", but=running)
    if not struck:
        return c, []
    failure = RunFailure(artifact=_UNKNOWN, status=Status.DEVICE_LOST, why=why, device=device)
    return _strike(c, running, failure)


def _without(c: Campaign, device: str, how: str, *, but: JobId = 0) -> Campaign:
    """A device is not there any more; the jobs that it has not begun are as ready as before."""
    c = replace(c, devices=tuple(d for d in c.devices if d != device))
    for number in [n for n, job in c.jobs.items() if job.device == device and n != but]:
        c = _move(c, number, c.jobs[number].to(Stage.READY, f"{device} {how} before its turn"))
    return c


def _held(c: Campaign, number: JobId, unconfirmed: bool) -> Campaign:
    """Remember a job that ends now, until its device confirms it."""
    if not unconfirmed:
        return c
    job = c.jobs[number]
    return replace(c, doubts=c.doubts.holding(number, job.device, job))


def _doubt(c: Campaign, device: str, why: str) -> tuple[Campaign, list[Command]]:
    """What a device has not confirmed is measured again."""
    held = c.doubts.of(device)
    if not held:
        return c, []
    again = {n: job.to(Stage.READY, f"{device} was not right") for n, job in held.items()}
    return replace(c, jobs=c.jobs.with_(again)), [Doubt(tuple(held), why)]


def _stop(c: Campaign) -> tuple[Campaign, list[Command]]:
    """Let go of everything that is not on a device."""
    if not c.stopping:
        return c, []
    dropped = [n for n, job in c.jobs.items() if job.stage is not Stage.RUNNING]
    return replace(c, jobs=c.jobs.without(*dropped)), [*map(Drop, dropped)]


def _measure(c: Campaign) -> tuple[Campaign, list[Command]]:
    commands: list[Command] = []
    while (pair := _next_run(c)) is not None:
        number, device = pair
        c = _move(c, number, c.jobs[number].to(Stage.RUNNING, f"on {device}", device=device))
        commands.append(Measure(device, number))
    return c, commands


def _next_run(c: Campaign) -> tuple[JobId, str] | None:
    """The oldest ready job and the least loaded device, one that has not failed it if there is."""
    ready, load = c.jobs.at(Stage.READY), c.jobs.load
    room = [d for d in c.devices if load(d) < c.windows.run_ahead] if ready else []
    if not room:
        return None
    strikes = c.jobs[ready[0]].strikes
    return ready[0], min(room, key=lambda d: (d in strikes, load(d)))


def _compile(c: Campaign) -> tuple[Campaign, list[Command]]:
    commands: list[Command] = []
    while (waiting := c.jobs.at(Stage.WAITING)) and c.jobs.open_batches <= c.windows.workers:
        jobs = tuple(waiting[: c.batch])
        batch = c.batches + 1
        moved = {n: c.jobs[n].to(Stage.COMPILING, "compiling", batch=batch) for n in jobs}
        c = replace(c, batches=batch, jobs=c.jobs.with_(moved))
        commands.append(Compile(jobs))
    return c, commands


def _ask(c: Campaign) -> tuple[Campaign, list[Command]]:
    """Ask in whole batches, or for less when there is nothing left to compile."""
    count = c.window - (len(c.jobs) - len(c.jobs.at(Stage.RUNNING)))
    worthwhile = count >= c.batch or not c.jobs.at(Stage.WAITING)
    if c.asking or c.dry or c.stopping or count < 1 or not worthwhile:
        return c, []
    return replace(c, asking=True), [Ask(min(count, ASK_MOST))]


def _finish(c: Campaign) -> tuple[Campaign, list[Command]]:
    if c.jobs or c.asking or not (c.stopping or c.dry):
        return c, []
    if any(c.doubts.of(device) for device in c.devices):
        unasked = tuple(device for device in c.doubts.unasked if device in c.devices)
        return replace(c, doubts=c.doubts.asking(unasked)), [*map(Confirm, unasked)]
    return replace(c, finished=True), [Finish("stopped" if c.stopping else "exhausted")]


def _move(c: Campaign, number: JobId, job: Job) -> Campaign:
    return replace(c, jobs=c.jobs.with_({number: job}))


def _is(c: Campaign, number: JobId, stage: Stage) -> bool:
    return number in c.jobs and c.jobs[number].stage is stage


def _runs_on(c: Campaign, number: JobId, device: str) -> bool:
    return _is(c, number, Stage.RUNNING) and c.jobs[number].device == device
