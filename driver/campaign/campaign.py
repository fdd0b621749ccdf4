"""The state of a search under way, as a value, and what holds in every such state."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

from driver.campaign.events import JobId
from driver.campaign.live import Jobs, JobStage, JobState
from tuner.lookahead import USUAL, Lookahead

BATCH_SECONDS: Final = 0.25
"""A compile task shorter than this costs more in handling than it saves in latency."""

HAND_SECONDS: Final = 0.2
"""What a device has in hand shall last so long: its runs are asked for several at a time."""

RERUN_SECONDS: Final = 1.0
"""What is to be run again when a device turns out to be wrong lasts so long: a small loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkLimits:
    """How much may be under way at once.

    Attributes:
        workers: compile tasks that run at the same time; one more is queued so that none idles;
        out_per_worker, out_per_device: candidates that are out when all are busy, for each;
        prefetch_depth: candidates that a device has to run, the running one included;
        run_limit: so many when they are short.
        held_limit: results that a device has not confirmed before it is asked to.
        attempts: runs of one candidate that the farm may spoil before it is given up.
        batch_limit: candidates in one compile task at most.
    """

    workers: int = 2
    out_per_worker: int = 8
    out_per_device: int = 4
    prefetch_depth: int = 2
    run_limit: int = 16
    held_limit: int = 16
    attempts: int = 3
    batch_limit: int = 10

    def busy_lookahead(self, devices: int) -> Lookahead:
        """How far to ask ahead so that so many devices and all workers are busy.

        While each worker has a compile task and one more is queued, there has to be room for those
        that run and wait to be confirmed.
        """
        return Lookahead(self.out_per_worker * (self.workers + 2) + self.out_per_device * devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """The whole state of a search under way, as a value.

    Attributes:
        lookahead: of the tuner.
        jobs: live jobs by number, oldest first.
        devices: names of the devices that are up.
        last_job: the highest number ever proposed.
        batches: compile tasks ever begun.
        build_seconds, run_seconds: running means; None before the first build, and the first run.
        confirming: devices that were told to confirm what they gave.
        asking: a `Propose` is unanswered.
        dry: the tuner has nothing more.
        asks_again: it said so while jobs were live, and may have more when it knows their ends.
        stopping: begin nothing new.
        finished: `EndCampaign` was given.
    """

    limits: WorkLimits = field(default_factory=WorkLimits)
    lookahead: Lookahead = USUAL
    jobs: Jobs = field(default_factory=Jobs)
    devices: tuple[str, ...] = ()
    last_job: JobId = 0
    batches: int = 0
    build_seconds: float | None = None
    run_seconds: float | None = None
    confirming: frozenset[str] = frozenset()
    asking: bool = False
    dry: bool = False
    asks_again: bool = False
    stopping: bool = False
    finished: bool = False

    @property
    def batch(self) -> int:
        """Candidates in a compile task that is worth its handling."""
        if not self.build_seconds:
            return 1
        return min(math.ceil(BATCH_SECONDS / self.build_seconds), self.limits.batch_limit)

    @property
    def queue_depth(self) -> int:
        """Candidates that a device may have to run."""
        if not self.run_seconds:
            return self.limits.prefetch_depth
        worth = min(math.ceil(HAND_SECONDS / self.run_seconds), self.limits.run_limit)
        return max(worth, self.limits.prefetch_depth)

    @property
    def held_limit(self) -> int:
        """Results that a busy device may hold before it is asked to confirm them."""
        if not self.run_seconds:
            return 1
        return min(math.ceil(RERUN_SECONDS / self.run_seconds), self.limits.held_limit)

    @property
    def room(self) -> int:
        """How many jobs the tuner will propose when it is asked now: it has to know some ends."""
        ended = self.last_job if self.jobs.oldest is None else self.jobs.oldest - 1
        return self.lookahead.limit(ended) - self.last_job

    @property
    def is_starved(self) -> bool:
        """Workers and devices have nothing to do, and the lookahead lets nothing more be out."""
        idle = self.jobs.open_batches < self.limits.workers and not self.jobs.at(JobStage.WAITING)
        may_ask = self.room > 0 or self.dry or self.stopping
        return idle and not may_ask and any(not self.jobs.load(d) for d in self.devices)

    @property
    def in_words(self) -> str:
        """What is under way and on which devices."""
        stages = Counter(job.stage.value for job in self.jobs.values())
        waiting = ", ".join(f"{count} {stage}" for stage, count in stages.items()) or "none live"
        devices = ", ".join(self.devices) or "none just now"
        return f"candidates: {waiting}; devices: {devices}"

    def with_job(self, number: JobId, job: JobState) -> Campaign:
        """As it is, but for what a job is now."""
        return replace(self, jobs=self.jobs.with_({number: job}))

    def with_built(self, count: int) -> Campaign:
        """As it is, with so many new candidates that need not be compiled."""
        numbers = range(self.last_job + 1, self.last_job + count + 1)
        built = JobState(stage=JobStage.READY, story=("given",))
        jobs = self.jobs.with_(dict.fromkeys(numbers, built))
        return replace(self, jobs=jobs, last_job=self.last_job + count)
