"""Batches in Ray's queue: a cluster that others fill gives a CPU late, which is no batch's fault.

So a batch's time limit begins when a worker takes it. What is bounded here is how long a run stands
still: none of its batches is compiled, and none of those that wait begins.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tilefarm.clock import Clock
from tilefarm.plural import plural

_WORTH_SECONDS: Final = 2.0
"""A shorter wait is not told of: every batch has one, and a new worker takes a second."""


@dataclass(eq=False, slots=True)
class QueuedBatch:
    """One batch: in the queue since then, until it has begun."""

    since_seconds: float
    began: bool = False


class RayQueue:
    """The batches of one run that Ray has; thread-safe.

    Args:
        patience_seconds: for which a run may stand still.
    """

    def __init__(self, patience_seconds: float, *, clock: Clock) -> None:
        self.patience_seconds = patience_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._standing: list[QueuedBatch] = []
        self._moved_seconds = -math.inf

    @contextmanager
    def batch(self) -> Iterator[QueuedBatch]:
        """Within, a batch is at Ray; first in the queue."""
        standing = QueuedBatch(self._clock.seconds())
        with self._lock:
            self._standing.append(standing)
        try:
            yield standing
        finally:
            with self._lock:
                self._standing.remove(standing)
                if standing.began:
                    self._moved_seconds = self._clock.seconds()

    def begin(self, standing: QueuedBatch) -> None:
        """A worker has taken the batch."""
        with self._lock:
            standing.began = True

    @property
    def patience_left_seconds(self) -> float:
        """How much longer the run may stand still as it does now; zero or less: too long."""
        with self._lock:
            now = self._clock.seconds()
            if any(batch.began for batch in self._standing):
                return self.patience_seconds
            first = min((batch.since_seconds for batch in self._standing), default=now)
            return self.patience_seconds - (now - max(first, self._moved_seconds))

    @property
    def waits_for(self) -> str:
        """How many batches wait and how long, in words; empty if none does to speak of."""
        with self._lock:
            waiting = [batch.since_seconds for batch in self._standing if not batch.began]
            longest = self._clock.seconds() - min(waiting, default=math.inf)
        if longest < _WORTH_SECONDS:
            return ""
        batches = plural(len(waiting), "batch", "batches")
        return f"{batches} in its queue, the first for {longest:.0f} s"
