"""Verdicts by counted cycles: they are exact, so every change is real, and is told.

What is accepted is the fewest cycles since somebody last accepted a night: a row that loses a
little every night, each time within the gate, fails as soon as the sum is beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from driver.jobs.nightly.judging.gates import Gates
from driver.jobs.nightly.judging.outcome import Outcome, percent
from driver.jobs.nightly.judging.past import Point
from driver.jobs.nightly.records import Sample, Verdict


def by_cycles(tonight: Sample, points: Sequence[Point], gates: Gates) -> Outcome:
    """The verdict of a row whose machine counts cycles."""
    accepted = accepted_point(points)
    if accepted is None:
        return Outcome(Verdict.INSUFFICIENT_HISTORY, "the first night with these schedules here")
    cycles = Fraction(tonight.time.cost)
    change = float(cycles / accepted.cost - 1)
    verdict = cycles_verdict(accepted.cost, cycles, gates.cycles)
    if cycles == accepted.cost:
        return Outcome(verdict, "", 0.0, accepted.night)
    more = "more" if change > 0 else "fewer"
    difference = f"{round(abs(cycles - accepted.cost)):,}".replace(",", " ")
    why = f"{difference} cycles {more} than accepted: {percent(change)}"
    if verdict is Verdict.UNCHANGED:
        why += f", within the gate of {percent(gates.cycles)}"
    return Outcome(verdict, why, change, accepted.night)


def cycles_verdict(accepted: Fraction | int, cycles: Fraction | int, gate: float) -> Verdict:
    """How a count stands to the accepted one; `gate` is the share of more that passes."""
    if cycles < accepted:
        return Verdict.FASTER
    # As people write it: of 1000 cycles, 0.3 % more are 1003, and no float is 0.003.
    is_slower = cycles - accepted > Fraction(repr(gate)) * accepted
    return Verdict.SLOWER if is_slower else Verdict.UNCHANGED


def accepted_point(points: Sequence[Point]) -> Point | None:
    """The last night with the accepted cycles; None where there is none."""
    accepted: Point | None = None
    for point in points:
        if point.verdict is Verdict.CHANGED_ANSWER and not point.is_accepted:
            continue  # what answers otherwise is no bar for what answers rightly
        if accepted is None or point.is_accepted or point.cost <= accepted.cost:
            accepted = point
    return accepted
