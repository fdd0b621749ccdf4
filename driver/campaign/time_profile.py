"""Where the time of a search goes: who did what for which candidate, and what that adds up to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from driver.campaign.candidate import Candidate
from driver.run_events import Span, TimeBreakdown

_KINDS: Final = ("propose", "compile", "transfer", "run")


class TimeProfile:
    """Notes what was done for candidates.

    Args:
        wall_origin: wall seconds of the command's begin; spans are counted from it.
        listen: hears of every span.
    """

    def __init__(self, wall_origin: float, listen: Callable[[Span], None]) -> None:
        self._origin = wall_origin
        self._listen = listen
        self._spent: dict[str, float] = {}
        self.first_measured_seconds: float | None = None
        """When the first run ended."""
        self.spans: list[Span] = []
        """All of them, as they ended."""

    def note(self, candidate: Candidate, kind: str, lane: str, began: float, ended: float) -> None:
        """Something was done for a candidate, between two wall seconds."""
        candidate.spans.append((kind, began, ended))
        self._spent[kind] = self._spent.get(kind, 0.0) + ended - began
        span = Span(
            lane=lane,
            kind=kind,
            label=candidate.task.name,
            begin_seconds=began - self._origin,
            end_seconds=ended - self._origin,
            candidate=candidate.name,
        )
        if kind == "run" and self.first_measured_seconds is None:
            self.first_measured_seconds = span.end_seconds
        self.spans.append(span)
        self._listen(span)

    @property
    def split(self) -> TimeBreakdown:
        """The seconds of every kind, over all candidates."""
        return TimeBreakdown(**{f"{kind}_seconds": self._spent.get(kind, 0.0) for kind in _KINDS})
