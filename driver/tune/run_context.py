"""What every step of a run has at hand: settings, clock, listener, and a place to work in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tilefarm.clock import Clock

from driver.campaign.job_runner import JobRunner
from driver.farm.device_messages import RunEnded
from driver.farm.lease_source import LeaseSource
from driver.report.terminal.ended import Listener
from driver.run_events import Notice, Span, StepBegan, StepEnded
from driver.stop_token import StopToken
from driver.tune.freed_memory import return_freed_memory
from driver.tune.settings import TuneSettings
from driver.tune.watched import Watched


@dataclass(slots=True, kw_only=True)
class RunContext:
    """The world of one run.

    Attributes:
        wall_origin: wall seconds when the command began; everything is counted from it.
        scratch: a temporary folder of the run's own.
        watch: its log and the calls that it makes; told of everything by `listen`.
    """

    settings: TuneSettings
    clock: Clock
    watch: Watched
    stop: StopToken
    scratch: Path
    run_id: str
    wall_origin: float

    @property
    def listen(self) -> Listener:
        """Who is told of what happens."""
        return self.watch

    @property
    def now(self) -> float:
        """Seconds since the command began."""
        return self.clock.wall_seconds() - self.wall_origin

    @contextmanager
    def step(self, name: str) -> Iterator[Callable[[str], None]]:
        """Announce a step; what is given to the yielded function is said at its end."""
        began = self.now
        self.listen(StepBegan(step=name, seconds=began))
        detail: list[str] = []
        with self.watch.waiting(lambda: f"{name} goes on"):
            yield detail.append
        return_freed_memory()
        ended = self.now
        self.listen(StepEnded(step=name, seconds=ended, detail=", ".join(detail)))
        self.listen(
            Span(lane="driver", kind=name, label=name, begin_seconds=began, end_seconds=ended)
        )

    def runner(self, leases: LeaseSource, devices: int) -> JobRunner:
        """Runs a few things on that many devices at most."""
        wait_seconds = self.settings.farm.device_wait_seconds
        return JobRunner(leases, devices=devices, wait_seconds=wait_seconds, clock=self.clock)

    def note_run(self, done: RunEnded, kind: str, label: str) -> None:
        """A span of something that ran outside of the search."""
        began, ended = (at - self.wall_origin for at in (done.began_seconds, done.ended_seconds))
        self.listen(
            Span(lane=done.device, kind=kind, label=label, begin_seconds=began, end_seconds=ended)
        )

    def say(self, text: str) -> None:
        """A line worth reading."""
        self.listen(Notice(text=text, seconds=self.now))
