"""The rows of one night in words: what each output says of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilefarm.printable import printable

from driver.jobs.nightly.records import Judged, Night, Sample
from driver.jobs.nightly.words import SIGNS, change_text, sample_text, verdict_words
from driver.jobs.nightly.zoo_history import RowHistory, ZooHistory


@dataclass(frozen=True, slots=True)
class NightRow:
    """A row that the night has a verdict of, and its sample; None where nothing was measured."""

    history: RowHistory
    judged: Judged
    sample: Sample | None

    @property
    def title(self) -> str:
        """resnet8 on sim: slower +3.00 %."""
        words = verdict_words(self.judged.verdict)
        return printable(f"{self.history.row}: {words} {change_text(self.judged)}".rstrip())

    @property
    def lines(self) -> list[str]:
        """Why, and what it took."""
        took = [f"took {sample_text(self.sample)}"] if self.sample else []
        return [printable(line) for line in (*self.history.lines(self.judged), *took)]


def night_rows(zoo: ZooHistory, night: Night) -> list[NightRow]:
    """All of a night, those that matter most first."""
    order = list(SIGNS)
    rows = list(_rows(zoo, night))
    rows.sort(key=lambda row: (order.index(row.judged.verdict), -abs(row.judged.change or 0.0)))
    return rows


def _rows(zoo: ZooHistory, night: Night) -> Iterator[NightRow]:
    for history in zoo.rows:
        judged = history.verdict(night.name)
        if judged is not None:
            known = (sample for sample in history.known if sample.night == night.name)
            yield NightRow(history, judged, next(known, None))
