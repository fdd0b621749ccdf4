"""What a night tells whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from driver.jobs.nightly.records import Judged, Row, Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class NightBegan:
    """A night begins, or goes on; `rows` are to be done, and `done` were done before."""

    night: str
    rows: int
    done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBegan:
    """The process of a row begins; `number` counts the night's rows as they begin."""

    row: Row
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDone:
    """A row has its verdict.

    Attributes:
        samples: that were kept: of the known schedules, and of better ones if there are.
        seconds: that its process took; 0 where there was none.
    """

    judged: Judged
    samples: tuple[Sample, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLeft:
    """A row is left as it is, and why: the same command does the rest of it."""

    row: Row
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NightNotice:
    """A line worth reading."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """A line that is printed as it is: what runs the command reads it."""

    text: str


NightEvent: TypeAlias = Annotation | NightBegan | RowBegan | RowDone | RowLeft | NightNotice
