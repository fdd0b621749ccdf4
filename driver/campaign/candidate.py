"""A candidate on its way through the farm, and the trial that it becomes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tilefarm.artifact import Artifact, BuildFailure
from tilefarm.digest import Digest
from tilefarm.lease import DeviceInfo
from tilefarm.measurement import (
    DeviceClock,
    Measurement,
    RunFailure,
    Status,
    Trial,
    is_spoiled,
)
from tilefarm.space import Point
from tilefarm.trace import Trace

from driver.campaign.events import JobId, Outcome
from driver.campaign.measuring import FIRST_LOOK, Task
from driver.farm.device_messages import Order


@dataclass(slots=True)
class Candidate:
    """What it is, and what became of it so far. `spans` are (stage, begin, end) in wall seconds.

    `digest` is that of its compile job, known when it was compiled; `ran_on` the device that
    measured it last.
    """

    task: Task
    point: Point
    trace: Trace
    artifact: Artifact | None = None
    attempts: int = 0
    digest: Digest | None = None
    ran_on: DeviceInfo | None = None
    spans: list[tuple[str, float, float]] = field(default_factory=list)

    @classmethod
    def of(cls, task: Task, point: Point) -> Candidate:
        """A point of a task's space."""
        return cls(task, point, task.trace(point))

    @property
    def name(self) -> str:
        """What logs and traces call it; empty before it was compiled."""
        return self.digest.short if self.digest else ""

    @property
    def is_default(self) -> bool:
        """Whether it is the untuned schedule of its workload."""
        return self.task.choice(self.point) == self.task.default

    def order(
        self,
        number: JobId,
        *,
        run_id: str,
        timeout_seconds: float,
        clock: DeviceClock,
        alone: bool = False,
    ) -> Order:
        """What a device with that clock is to do next for a candidate that was built.

        It is another request each time.
        """
        assert self.artifact is not None
        self.attempts += 1
        order = self.task.order(
            self.artifact,
            f"{run_id}-{number}-{self.attempts}",
            timeout_seconds=timeout_seconds,
            precision=FIRST_LOOK if clock is DeviceClock.SECONDS else None,
            clock=clock,
        )
        return replace(order, number=number, candidate=self.artifact.job.short, alone=alone)

    def trial(self, outcome: Outcome, story: tuple[str, ...], proposer: str) -> Trial:
        """The record of how it ended."""
        trial = Trial(
            workload=self.task.digest,
            trace=self.trace.digest,
            point=self.task.choice(self.point),
            status=Status.OK,
            artifact=self.artifact.digest if self.artifact else None,
            device="" if isinstance(outcome, BuildFailure) else outcome.device,
            proposer=proposer,
            spans=tuple(self.spans),
        )
        if isinstance(outcome, Measurement):
            return replace(
                trial,
                cycles=outcome.cycles,
                wall_time=outcome.wall_time,
                seconds=outcome.seconds,
            )
        return replace(trial, status=outcome.status, why=_why(outcome, story))


def _why(failure: BuildFailure | RunFailure, story: tuple[str, ...]) -> str:
    """The reason; of a run that was made again and again the whole story, of a crash how to repeat
    it.
    """
    if isinstance(failure, RunFailure) and is_spoiled(failure):
        return "; ".join(story)
    kept = failure.kept if isinstance(failure, BuildFailure) else None
    return f"{failure.why}; `tilefarm replay {kept.short}` repeats it" if kept else failure.why
