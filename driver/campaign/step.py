"""What to do next, as a pure function: events in, commands out; no clock, no threads, no farm.

    proposed ─► waiting ─► compiling ─► ready ─► running ─► held ─► told
                              │           ▲         │         │ its device did not confirm it
                              └─► told    └─────────┴─────────┘

What the farm spoils goes back, a run to ready and a compile to waiting, fewer than `attempts`
times; so does, once, a run that had no end in time.

Builds and runs stream past each other: every event moves one job and then fills whatever window
has room, so a device never waits for a batch and a compile worker never waits for a device.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from driver.campaign.campaign import Campaign
from driver.campaign.commands import Command, Compile, Dispatch, EndCampaign, Propose
from driver.campaign.events import Event, JobId
from driver.campaign.live import JobStage
from driver.campaign.transitions import heard
from driver.farm.device_messages import Confirm

ASK_MOST: Final = 64
"""Proposals in one answer: with many devices, the first must not wait for thousands of others."""


def step(campaign: Campaign, *events: Event) -> tuple[Campaign, list[Command]]:
    """The state after events that have come together, and what to do now, in order.

    Events about jobs that are not in the stage the event speaks of are late or doubled; they change
    nothing.

    Raises:
        ValueError: a job was proposed twice.
    """
    if campaign.finished:
        return campaign, []
    commands: list[Command] = []
    for event in events:
        campaign, more = heard(campaign, event)
        commands += more
        if campaign.finished:
            return campaign, commands
    for fill in (_stop, _measure, _compile, _ask, _confirm, _finish):
        campaign, more = fill(campaign)
        commands += more
    return campaign, commands


def _stop(c: Campaign) -> tuple[Campaign, list[Command]]:
    """Let go of everything that is not on a device; a later search asks for it again."""
    if not c.stopping:
        return c, []
    kept = (JobStage.RUNNING, JobStage.HELD)
    dropped = [n for n, job in c.jobs.items() if job.stage not in kept]
    return replace(c, jobs=c.jobs.without(*dropped)), []


def _measure(c: Campaign) -> tuple[Campaign, list[Command]]:
    commands: list[Command] = []
    while (pair := _next_run(c)) is not None:
        number, device = pair
        c = c.with_job(number, c.jobs[number].to(JobStage.RUNNING, f"on {device}", device=device))
        commands.append(Dispatch(device, number, c.jobs[number].alone))
    return c, commands


def _next_run(c: Campaign) -> tuple[JobId, str] | None:
    """The oldest ready job that a device has room for, and the least loaded one for it.

    A job that a device has failed waits for another one as long as there is another.
    """
    load, ready = c.jobs.load, c.jobs.at(JobStage.READY)
    free = {d for d in c.devices if load(d) < c.queue_depth} if ready else set()
    for number in ready if free else ():
        strikes = c.jobs[number].strikes
        fit = [d for d in c.devices if d not in strikes] or c.devices
        room = [d for d in fit if d in free]
        if room:
            return number, min(room, key=load)
    return None


def _compile(c: Campaign) -> tuple[Campaign, list[Command]]:
    """Give out what waits: whole compile tasks, or smaller ones so that no worker idles."""
    commands: list[Command] = []
    while (waiting := c.jobs.at(JobStage.WAITING)) and c.jobs.open_batches <= c.limits.workers:
        idle = max(1, c.limits.workers - c.jobs.open_batches)
        jobs = tuple(waiting[: min(c.batch, math.ceil(len(waiting) / idle))])
        batch = c.batches + 1
        moved = {n: c.jobs[n].to(JobStage.COMPILING, "compiling", batch=batch) for n in jobs}
        c = replace(c, batches=batch, jobs=c.jobs.with_(moved))
        commands.append(Compile(jobs))
    return c, commands


def _ask(c: Campaign) -> tuple[Campaign, list[Command]]:
    """Ask for whole compile tasks, or for less when there is nothing left to compile."""
    idle = c.jobs.open_batches < c.limits.workers
    worthwhile = c.room >= c.batch or (idle and not c.jobs.at(JobStage.WAITING))
    is_dry = c.dry and not (c.asks_again and not c.jobs)
    if c.asking or is_dry or c.stopping or c.room < 1 or not worthwhile:
        return c, []
    return replace(c, asking=True, dry=False), [Propose(min(c.room, ASK_MOST))]


def _confirm(c: Campaign) -> tuple[Campaign, list[Command]]:
    """Have devices confirm what they gave: those that would have much to run again, and idle ones.

    A check takes some milliseconds, so of short compiles a few come together, unless the tuner has
    to know their ends before it can give the workers more.
    """
    waits = c.jobs.open_batches <= c.limits.workers and not c.jobs.at(JobStage.WAITING)
    is_due = c.dry or c.stopping or (waits and c.room < c.batch)

    def should(device: str, held: int) -> bool:
        if device in c.confirming:
            return False
        idle = not c.jobs.load(device)
        return held >= c.held_limit or (idle and (is_due or 2 * held >= c.batch))

    asked = [device for device, numbers in c.jobs.held.items() if should(device, len(numbers))]
    c = replace(c, confirming=c.confirming | set(asked)) if asked else c
    return c, [*map(Confirm, asked)]


def _finish(c: Campaign) -> tuple[Campaign, list[Command]]:
    if c.jobs or c.asking or not (c.stopping or c.dry):
        return c, []
    return replace(c, finished=True), [EndCampaign("stopped" if c.stopping else "exhausted")]
