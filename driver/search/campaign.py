"""The state of a search under way, as a value, and what holds in every such state."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from driver.search.alike import Streak
from driver.search.doubts import Doubts
from driver.search.live import Job, Jobs, Stage
from driver.search.moves import JobId

BATCH_SECONDS: Final = 0.25
"""A compile task shorter than this costs more in handling than it saves in latency."""

HAND_SECONDS: Final = 0.2
"""What a device has in hand shall last so long: its runs are asked for several at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """How much may be under way at once.

    Attributes:
        workers: compile tasks that run at the same time; one more is queued so that none idles.
        compile_ahead: candidates per device that are proposed but not yet on a device.
        run_ahead: candidates that a device holds, the running one included;
        run_limit: so many when they are short.
        attempts: runs of one candidate that the farm may spoil before it is given up.
        batch_limit: candidates in one compile task at most.
        alike: failures of one task for one cause, and nothing else, after which it is given up.
    """

    workers: int = 2
    compile_ahead: int = 4
    run_ahead: int = 2
    run_limit: int = 16
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
        build_seconds, run_seconds: running means; None before the first build, and the first run.
        streaks: how the candidates of each task have failed so far.
        doubts: jobs that were told, but not confirmed by their devices yet.
        awaited: devices that may still come up, and have jobs of earlier sessions to confirm.
        inquired: devices that are not up, and have not answered whether they were wrong.
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
    run_seconds: float | None = None
    streaks: Mapping[str, Streak] = field(default_factory=dict)
    doubts: Doubts[Job] = field(default_factory=Doubts)
    awaited: frozenset[str] = frozenset()
    inquired: frozenset[str] = frozenset()
    asking: bool = False
    dry: bool = False
    stopping: bool = False
    finished: bool = False

    @classmethod
    def after(cls, told: Mapping[JobId, tuple[str, str]], windows: Windows) -> Campaign:
        """One that goes on where another ended.

        Args:
            told: (device, task) of the jobs that were told there, and were not confirmed.
            windows: its own.
        """
        held = {number: (device, Job(task=task)) for number, (device, task) in told.items()}
        return cls(
            windows=windows,
            last_job=max(told, default=0),
            doubts=Doubts(held),
            awaited=frozenset(device for device, _ in told.values()),
        )

    @property
    def batch(self) -> int:
        """Candidates in a compile task that is worth its handling."""
        if not self.build_seconds:
            return 1
        return min(math.ceil(BATCH_SECONDS / self.build_seconds), self.windows.batch_limit)

    @property
    def hand(self) -> int:
        """Candidates that a device may hold."""
        if not self.run_seconds:
            return self.windows.run_ahead
        worth = min(math.ceil(HAND_SECONDS / self.run_seconds), self.windows.run_limit)
        return max(worth, self.windows.run_ahead)

    @property
    def window(self) -> int:
        """How many jobs may be proposed, besides `run_ahead` for each device."""
        ahead = self.windows.compile_ahead * max(1, len(self.devices))
        return max(ahead, self.windows.workers * self.batch)

    @property
    def in_words(self) -> str:
        """What is under way and on which devices."""
        stages = Counter(job.stage.value for job in self.jobs.values())
        waiting = ", ".join(f"{count} {stage}" for stage, count in stages.items()) or "none live"
        awaited = f"; to confirm: {', '.join(sorted(self.awaited))}" if self.awaited else ""
        devices = ", ".join(self.devices) or "none just now"
        return f"candidates: {waiting}; devices: {devices}{awaited}"

    def with_job(self, number: JobId, job: Job) -> Campaign:
        """As it is, but for what a job is now."""
        return replace(self, jobs=self.jobs.with_({number: job}))

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
            if self.jobs.load(device) > max(self.windows.run_ahead, self.windows.run_limit)
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
