"""Compile workers: a queue of batches, one thread for each place, and what a death means.

A batch that kills its worker or takes too long is halved until the culprit is alone; a job alone
that does it twice gets a typed failure, COMPILE_CRASH or COMPILE_TIMEOUT, and is kept with the IR
of its last good step. The others lose nothing but time.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from tilefarm.artifact import BuildFailure
from tilefarm.clock import Clock, SystemClock
from tilefarm.measurement import Status

from driver.compiling.kept import KeptCompiles
from driver.compiling.places import Place, PlaceCrashed, PlaceTimedOut

if TYPE_CHECKING:
    from compile_worker.worker import Job, Result

_CLOSE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One finished job of a batch.

    `lane` names the worker. `began_seconds` and `ended_seconds` are wall time on this machine.
    """

    number: int
    result: Result
    lane: str
    began_seconds: float
    ended_seconds: float


Deliver = Callable[[Build | BaseException], None]
"""Takes finished jobs, from any thread; an exception means that compiling is over."""


class Executor(Protocol):
    """Compiles batches somewhere, several at once."""

    def submit(self, batch: Sequence[tuple[int, Job]], deliver: Deliver) -> None:
        """Queue numbered jobs as one task; `deliver` is called once for each, in any order."""
        ...

    def close(self) -> None:
        """Forget what is queued and end the workers."""
        ...


class Workers:
    """An executor over places: each place has a thread that feeds it.

    Args:
        places: one batch at a time each.
        timeout_seconds: for one job.
        kept: where crashes and hangs are kept; None: nowhere.
    """

    def __init__(
        self,
        places: Sequence[Place],
        *,
        timeout_seconds: float,
        kept: KeptCompiles | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._places = places
        self._timeout_seconds = timeout_seconds
        self._kept = kept
        self._clock = clock or SystemClock()
        self._queue: queue.SimpleQueue[tuple[Sequence[tuple[int, Job]], Deliver] | None] = (
            queue.SimpleQueue()
        )
        self._closed = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._feed, args=(place, f"compile {n}"), name=f"compile-{n}", daemon=True
            )
            for n, place in enumerate(places, 1)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, batch: Sequence[tuple[int, Job]], deliver: Deliver) -> None:
        self._queue.put((tuple(batch), deliver))

    def close(self) -> None:
        self._closed.set()
        for _ in self._threads:
            self._queue.put(None)
        for place in self._places:
            place.kill()
        for thread in self._threads:
            thread.join(_CLOSE_SECONDS)

    def _feed(self, place: Place, lane: str) -> None:
        try:
            place.prepare()
            self._serve(place, lane)
        finally:
            place.close()

    def _serve(self, place: Place, lane: str) -> None:
        while (task := self._queue.get()) is not None and not self._closed.is_set():
            batch, deliver = task
            try:
                self._run(place, lane, batch, deliver)
            except Exception as broken:
                if not self._closed.is_set():
                    deliver(broken)

    def _run(
        self, place: Place, lane: str, batch: Sequence[tuple[int, Job]], deliver: Deliver
    ) -> None:
        began = self._clock.wall_seconds()
        jobs = [job for _, job in batch]
        try:
            results = place.compile(jobs, self._timeout_seconds * len(jobs))
        except (PlaceCrashed, PlaceTimedOut):
            if not self._closed.is_set():
                self._halve(place, lane, batch, deliver)
            return
        results = [
            self._alone(place, job) if _crashed(result) else result
            for job, result in zip(jobs, results, strict=True)
        ]
        ended = self._clock.wall_seconds()
        for build in _spread(lane, batch, results, began, ended):
            deliver(build)

    def _halve(
        self, place: Place, lane: str, batch: Sequence[tuple[int, Job]], deliver: Deliver
    ) -> None:
        if len(batch) > 1:
            middle = len(batch) // 2
            self._run(place, lane, batch[:middle], deliver)
            self._run(place, lane, batch[middle:], deliver)
            return
        began = self._clock.wall_seconds()
        result = self._alone(place, batch[0][1])
        ended = self._clock.wall_seconds()
        if not self._closed.is_set():
            deliver(*_spread(lane, batch, [result], began, ended))

    def _alone(self, place: Place, job: Job) -> Result:
        """A job that failed badly once more, by itself; what it leaves when it does so is kept."""
        trail = None if self._kept is None else self._kept.trail(job)
        try:
            result = place.compile(
                [job], self._timeout_seconds, None if trail is None else trail.path
            )[0]
        except PlaceCrashed as again:
            result = _failure(job, Status.COMPILE_CRASH, str(again))
        except PlaceTimedOut as again:
            result = _failure(job, Status.COMPILE_TIMEOUT, str(again))
        if self._kept is None or trail is None:
            return result
        last = trail.read()
        trail.path.unlink(missing_ok=True)
        if isinstance(result, BuildFailure) and result.status is not Status.COMPILE_ERROR:
            return self._kept.keep_failure(job, result, last)
        return result


def _spread(
    lane: str,
    batch: Sequence[tuple[int, Job]],
    results: Sequence[Result],
    began: float,
    ended: float,
) -> list[Build]:
    """When each job of a batch was built: one after the other, each as long as it says."""
    builds, at = [], ended
    for (number, _), result in reversed(list(zip(batch, results, strict=True))):
        start = max(began, at - result.build_seconds)
        builds.append(
            Build(number=number, result=result, lane=lane, began_seconds=start, ended_seconds=at)
        )
        at = start
    return builds[::-1]


def _failure(job: Job, status: Status, why: str) -> BuildFailure:
    return BuildFailure(job=job.digest, status=status, stage="compile", why=why)


def _crashed(result: Result) -> bool:
    """Whether the compiler raised what it did not foresee."""
    return isinstance(result, BuildFailure) and result.status is Status.COMPILE_CRASH
