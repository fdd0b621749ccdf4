"""The runs that a device refuses because they crashed it, as it last told, within bounds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from tilefarm.rpc.tracker_calls import RefusedRun, RefusedRuns

MOST_REFUSED: Final = 256
"""Runs of one device; it remembers no more itself."""

LONGEST_WORDS: Final = 300
"""Characters of an entry, of a status and of a reason."""


class RefusedList:
    """Those of one life of a device."""

    __slots__ = ("_heard", "_runs", "edition")

    def __init__(self) -> None:
        self._runs: tuple[RefusedRun, ...] = ()
        self._heard = 0.0
        self.edition = 0
        """Of what the device told last."""

    def __len__(self) -> int:
        return len(self._runs)

    def hear(self, told: RefusedRuns, now: float) -> None:
        """All that it refuses now."""
        self.edition, self._heard = told.edition, now
        self._runs = tuple(map(_within_bounds, told.runs[-MOST_REFUSED:]))

    def forgive(self) -> None:
        """The device is about to hear that it forgets them."""
        self._runs = ()

    def rows(self, now: float) -> tuple[RefusedRun, ...]:
        """Each with how long it has been refused by now."""
        since = now - self._heard
        return tuple(replace(r, refused_seconds=r.refused_seconds + since) for r in self._runs)


def _within_bounds(run: RefusedRun) -> RefusedRun:
    seconds = run.refused_seconds
    return replace(
        run,
        entry=run.entry[:LONGEST_WORDS],
        status=run.status[:LONGEST_WORDS],
        why=run.why[:LONGEST_WORDS],
        refused_seconds=seconds if math.isfinite(seconds) and seconds > 0 else 0.0,
    )
