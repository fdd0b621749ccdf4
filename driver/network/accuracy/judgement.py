"""Whether the integers keep their promise, on some samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tilefarm.plural import form, plural

from driver.network.accuracy.judging import Compared
from driver.network.accuracy.metric import value_text
from driver.network.accuracy.promise import Promise

_SPREADS: Final = 2.0
"""How many standard deviations above chance a score must be to say something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the integers lose on some samples.

    Attributes:
        title: of the measure.
        floats, integers: its values, %; float agrees with itself on all.
        samples: that were judged.
        is_held_out: none of them calibrated the network.
        is_of_labels: the measure is against labels, not against float.
    """

    promise: Promise
    title: str
    floats: float
    integers: float
    samples: int
    is_held_out: bool
    is_of_labels: bool

    @property
    def points(self) -> float:
        """What is lost; below 0 where the integers are better."""
        return self.floats - self.integers

    @property
    def is_kept(self) -> bool:
        return self.points <= self.promise.limit

    def words(self) -> str:
        """One line: what is lost, of what, on which samples."""
        lost = max(self.points, 0.0)
        seen = "" if self.is_held_out else ", which calibrated it"
        return (
            f"{points_text(lost)} of {self.title} lost ({value_text('%', self.floats)} to"
            f" {value_text('%', self.integers)}, {plural(self.samples, 'sample')}{seen})"
        )

    def verdict(self) -> str:
        """What was promised, and whether it is kept."""
        kept = "kept" if self.is_kept else "broken"
        return f"promise of {points_text(self.promise.points)} {kept}: {self.words()}"


def points_text(points: float) -> str:
    """So many points, in words."""
    number = f"{points:.2f}".rstrip("0").rstrip(".")
    return f"{number} {form(1 if number == '1' else 2, 'point', 'points')}"


def judgement(
    promise: Promise,
    compared: Sequence[Compared],
    *,
    samples: int,
    is_held_out: bool,
    chance: float | None = None,
) -> Judgement | None:
    """What is lost by the first measure that says something; None where none does.

    Args:
        compared: the measures of the samples, see `accuracy.judging.Judge.compared`.
        chance: what guessing reaches by labels, %; a float network that is no better says nothing.
    """
    for row in compared:
        floats = 100.0 if row.against == "float" else row.floats
        if row.unit != "%" or floats is None or row.reference is None:
            continue
        if row.against == "labels" and is_chance(floats, chance, samples):
            continue
        return Judgement(
            promise=promise,
            title=row.title,
            floats=floats,
            integers=row.reference,
            samples=samples,
            is_held_out=is_held_out,
            is_of_labels=row.against == "labels",
        )
    return None


def is_chance(value: float, chance: float | None, samples: int) -> bool:
    """Whether so many samples cannot tell a score, in %, from guessing."""
    if chance is None or not samples:
        return False
    share = chance / 100
    return value <= chance + 100 * _SPREADS * math.sqrt(share * (1 - share) / samples)
