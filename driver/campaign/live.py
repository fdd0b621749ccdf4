"""The live candidates of a search, found by stage, by device and by compile task.

A value, as the whole campaign is: a change gives another one. With a thousand devices there are
thousands of them, and an event is about one: nothing here goes through all of them in Python.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeVar

from driver.campaign.events import JobId, Outcome

_Key = TypeVar("_Key", int, str)


class JobStage(Enum):
    """Where a live job is."""

    WAITING = "waiting"
    COMPILING = "compiling"
    READY = "ready"
    RUNNING = "running"
    HELD = "held"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """One live candidate.

    `batch` numbers its compile task. `strikes` names who failed it by the farm's fault: devices, or
    workers. `alone`: it is run by itself, as it or another has cost a device, or too much time.
    `outcome` is what its device gave, and has not confirmed. `story` tells what happened to it,
    oldest first.
    """

    stage: JobStage = JobStage.WAITING
    batch: int = 0
    device: str = ""
    strikes: tuple[str, ...] = ()
    alone: bool = False
    outcome: Outcome | None = None
    story: tuple[str, ...] = ("proposed",)

    def to(
        self,
        stage: JobStage,
        note: str,
        *,
        batch: int = 0,
        device: str = "",
        outcome: Outcome | None = None,
    ) -> JobState:
        """It is somewhere else now."""
        return replace(
            self,
            stage=stage,
            batch=batch,
            device=device,
            outcome=outcome,
            story=(*self.story, note),
        )


@dataclass(frozen=True, slots=True)
class _Index:
    """Numbers by stage, oldest first; what each device runs and has not confirmed; how many jobs
    each compile task has.
    """

    stages: dict[JobStage, list[JobId]] = field(default_factory=dict)
    loads: dict[str, int] = field(default_factory=dict)
    held: dict[str, tuple[JobId, ...]] = field(default_factory=dict)
    batches: dict[int, int] = field(default_factory=dict)

    def copy(self) -> _Index:
        stages = {stage: numbers.copy() for stage, numbers in self.stages.items()}
        return _Index(stages, self.loads.copy(), self.held.copy(), self.batches.copy())

    def add(self, number: JobId, job: JobState) -> None:
        insort(self.stages.setdefault(job.stage, []), number)
        if job.stage is JobStage.HELD:
            self.held[job.device] = (*self.held.get(job.device, ()), number)
        else:
            self.loads[job.device] = self.loads.get(job.device, 0) + 1
        self.batches[job.batch] = self.batches.get(job.batch, 0) + 1

    def remove(self, number: JobId, job: JobState) -> None:
        numbers = self.stages[job.stage]
        del numbers[bisect_left(numbers, number)]
        if job.stage is JobStage.HELD:
            left = tuple(other for other in self.held.pop(job.device) if other != number)
            if left:
                self.held[job.device] = left
        else:
            _less(self.loads, job.device)
        _less(self.batches, job.batch)


class Jobs(Mapping[JobId, JobState]):
    """Live jobs by number; new ones have higher numbers than those that there were."""

    __slots__ = ("_index", "_jobs")

    def __init__(self, jobs: Mapping[JobId, JobState] | None = None) -> None:
        self._jobs = dict(jobs or {})
        self._index = _Index()
        for number, job in self._jobs.items():
            self._index.add(number, job)

    def __getitem__(self, number: JobId) -> JobState:
        return self._jobs[number]

    def __iter__(self) -> Iterator[JobId]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)

    def with_(self, changes: Mapping[JobId, JobState]) -> Jobs:
        """These jobs, but so."""
        return self._changed(changes, ())

    def without(self, *numbers: JobId) -> Jobs:
        """These jobs but some that are among them."""
        return self._changed({}, numbers)

    def at(self, stage: JobStage) -> list[JobId]:
        """The numbers of the jobs in a stage, oldest first; not to be changed."""
        return self._index.stages.get(stage, [])

    def load(self, device: str) -> int:
        """How many jobs a device has to run."""
        return self._index.loads.get(device, 0)

    @property
    def held(self) -> Mapping[str, tuple[JobId, ...]]:
        """What devices have run and not confirmed, in that order."""
        return self._index.held

    @property
    def oldest(self) -> JobId | None:
        """The lowest number; None without jobs."""
        return next(iter(self._jobs), None)

    @property
    def open_batches(self) -> int:
        """Compile tasks under way."""
        return len(self._index.batches.keys() - {0})

    def _changed(self, changes: Mapping[JobId, JobState], numbers: tuple[JobId, ...]) -> Jobs:
        changed = Jobs()
        changed._jobs, changed._index = self._jobs.copy(), self._index.copy()
        for number in (*changes, *numbers):
            old = changed._jobs.get(number)
            if old is not None:
                changed._index.remove(number, old)
        for number in numbers:
            del changed._jobs[number]
        for number, job in changes.items():
            changed._jobs[number] = job
            changed._index.add(number, job)
        return changed


def _less(counts: dict[_Key, int], key: _Key) -> None:
    """One less of something; what there is none of is not counted at all."""
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
