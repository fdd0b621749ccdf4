"""The nights of a row that tonight can be compared with: same machine, model and data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilefarm.digest import Digest

from driver.jobs.nightly.judging.set_units import fair_cost, units
from driver.jobs.nightly.records import Acceptance, Answers, Judged, Order, Pass, Sample, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPast:
    """What is known of one row before tonight, the oldest first."""

    samples: Sequence[Sample] = ()
    judged: Sequence[Judged] = ()
    acceptances: Sequence[Acceptance] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What one night measured, over its control, in units of tonight's schedules.

    Attributes:
        schedules: those that it was measured with.
        is_scaled: whether they are others than tonight's.
        verdict, change: of that night; None where it has none.
        is_accepted: somebody took this night's cost and answers for what they are from then on.
    """

    night: str
    cost: Fraction
    schedules: Digest
    is_scaled: bool
    order: Order
    answers: Answers
    verdict: Verdict | None = None
    change: float | None = None
    is_accepted: bool = False


def comparable(past: RowPast, tonight: Sample) -> list[Point]:
    """A point for each night of the same machine, model and data, the oldest first.

    With a control nights are compared that have one, and without it the others.

    Nights with schedules that no night has measured beside others are left out.
    """
    alike = [
        sample
        for sample in past.samples
        if sample.machine == tonight.machine
        and is_same_network(sample, tonight)
        and (sample.time.control is None) == (tonight.time.control is None)
    ]
    nights = {sample.night: sample for sample in alike if sample.part is Pass.FOUND}
    nights |= {sample.night: sample for sample in alike if sample.part is Pass.KNOWN}
    verdicts = {each.night: each for each in past.judged}
    accepted = {each.night for each in past.acceptances}
    factors = units(alike, tonight.schedules)
    order = dict.fromkeys(sample.night for sample in alike)
    return [
        _point(sample, factors[sample.schedules], tonight, verdicts.get(night), night in accepted)
        for night in order
        if (sample := nights[night]).schedules in factors
    ]


def is_same_network(one: Sample, other: Sample) -> bool:
    """Whether two samples are of the same model, with the same data."""
    return (one.order.model, one.order.data) == (other.order.model, other.order.data)


def _point(
    sample: Sample, factor: Fraction, tonight: Sample, judged: Judged | None, is_accepted: bool
) -> Point:
    return Point(
        night=sample.night,
        cost=Fraction(fair_cost(sample)) * factor,
        schedules=sample.schedules,
        is_scaled=sample.schedules != tonight.schedules,
        order=sample.order,
        answers=sample.answers,
        verdict=None if judged is None else judged.verdict,
        change=None if judged is None else judged.change,
        is_accepted=is_accepted,
    )
