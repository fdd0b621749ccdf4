"""Looking at a job while it goes on: whether it began, what it prints, how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilefarm.clock import Clock
from tilefarm.errors import InfraError

from driver.jobs.dashboard import Dashboard
from driver.jobs.responses import RayJob
from driver.jobs.shipping import last_line

POLL_SECONDS: Final = 0.5
BEGIN_SECONDS: Final = 60.0
STEADY_SECONDS: Final = 4.0
"""A job that another version of tilefarm refuses has ended by then."""


def begun(dashboard: Dashboard, job: str, clock: Clock) -> RayJob:
    """The job, once it has run for a moment, or stands in line behind others.

    Raises:
        InfraError: it has failed already.
    """
    until = clock.seconds() + BEGIN_SECONDS
    steady: float | None = None
    while True:
        state = dashboard.job(job)
        if state.status == "FAILED":
            why = last_line(dashboard.log(job)) or state.message
            raise InfraError(f"{job} failed at once: {why}", f"`tilefarm logs {job}`")
        now = clock.seconds()
        if state.status == "RUNNING" and steady is None:
            steady = now + STEADY_SECONDS
        if state.ended or now > until or (steady is not None and now > steady):
            return state
        clock.sleep(POLL_SECONDS)


def followed(dashboard: Dashboard, job: str, clock: Clock) -> Iterator[str]:
    """What a job prints, piece by piece, until it ends."""
    shown = 0
    while True:
        ended = dashboard.job(job).ended
        log = dashboard.log(job)
        if len(log) > shown:
            yield log[shown:]
            shown = len(log)
        if ended:
            return
        clock.sleep(POLL_SECONDS)


def stopped(dashboard: Dashboard, job: str, clock: Clock) -> RayJob:
    """The job, once it has ended; it is asked to, if it has not.

    Raises:
        InfraError: it does not end.
    """
    until = clock.seconds() + BEGIN_SECONDS
    if not dashboard.job(job).ended:
        dashboard.stop(job)
    while not (state := dashboard.job(job)).ended:
        if clock.seconds() > until:
            raise InfraError(f"{job} does not end within {BEGIN_SECONDS:g} s", "try once more")
        clock.sleep(POLL_SECONDS)
    return state
