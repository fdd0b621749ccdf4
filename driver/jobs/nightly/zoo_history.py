"""What pages and outputs show: the nights of one zoo, and of each row its times and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from driver.jobs.nightly.records import ChosenSchedule, Judged, Night, Pass, Row, Sample
from driver.jobs.nightly.why import Explanation

LAYER_NIGHTS: Final = 60
"""The last nights, whose samples have their layers: those of a year would take a gigabyte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowHistory:
    """One row through the nights.

    Attributes:
        samples: the oldest first; of a night the known schedules' before what was found.
        known: a sample a night: of the known schedules, or of the found ones where it has no other.
        judged: the verdicts, the oldest first.
        steps: names of the nights in which its times have changed for good, seen afterwards.
        schedules: those that its next night will compile.
        reasons: of a night by name, what explains its verdict.
    """

    row: Row
    samples: tuple[Sample, ...]
    judged: tuple[Judged, ...]
    steps: tuple[str, ...] = ()
    schedules: tuple[ChosenSchedule, ...] = ()
    reasons: Mapping[str, Explanation] = field(default_factory=dict)

    known: tuple[Sample, ...] = field(init=False, repr=False, compare=False)
    _samples: Mapping[tuple[str, Pass], Sample] = field(init=False, repr=False, compare=False)
    _verdicts: Mapping[str, Judged] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        nights: dict[str, Sample] = {}
        for sample in self.samples:
            if sample.part is Pass.KNOWN or sample.night not in nights:
                nights[sample.night] = sample
        object.__setattr__(self, "known", tuple(nights.values()))
        object.__setattr__(self, "_samples", {(s.night, s.part): s for s in self.samples})
        object.__setattr__(self, "_verdicts", {each.night: each for each in self.judged})

    def lines(self, judged: Judged) -> list[str]:
        """What explains a verdict, line by line."""
        more = self.reasons[judged.night].lines if judged.night in self.reasons else ()
        return [line for line in (judged.why, *more) if line]

    def verdict(self, night: str) -> Judged | None:
        """That of a night; None where it says nothing of this row."""
        return self._verdicts.get(night)

    def sample(self, night: str, part: Pass = Pass.KNOWN) -> Sample | None:
        """That of a night; None where nothing was measured."""
        return self._samples.get((night, part))


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooHistory:
    """Everything that a page shows.

    Attributes:
        nights: the oldest first.
        rows: as the zoo's file has them.
    """

    zoo: str
    nights: tuple[Night, ...]
    rows: tuple[RowHistory, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """Their names, each once."""
        return tuple(dict.fromkeys(each.row.model for each in self.rows))

    @property
    def targets(self) -> tuple[str, ...]:
        """Their names, each once."""
        return tuple(dict.fromkeys(each.row.target for each in self.rows))

    @property
    def last(self) -> Night | None:
        """The latest night; None in the beginning."""
        return self.nights[-1] if self.nights else None

    def at(self, row: Row) -> RowHistory | None:
        """A row's own history."""
        return next((each for each in self.rows if each.row == row), None)
