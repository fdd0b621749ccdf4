"""Whether a network still answers as it did: bit for bit, and as well as its gate asks for."""

from __future__ import annotations

from collections.abc import Sequence

from tilefarm.plural import form, plural

from driver.jobs.nightly.judging.gates import Gates
from driver.jobs.nightly.judging.outcome import Outcome
from driver.jobs.nightly.judging.past import Point
from driver.jobs.nightly.records import Answers, Sample, Verdict


def changed_answer(tonight: Sample, points: Sequence[Point], gates: Gates) -> Outcome | None:
    """The verdict where something is wrong with the answers; None where nothing is."""
    answers = tonight.answers
    if answers.differing:
        samples = plural(answers.differing, "sample")
        why = f"{samples} {form(answers.differing, 'differs', 'differ')} from the integer reference"
        return Outcome(Verdict.CHANGED_ANSWER, why)
    least, score = gates.least_score, answers.score
    if least is not None and (score is None or score < least):
        why = f"{answers.measure or 'no measure'} is {_number(score)}, below its gate of {least:g}"
        return Outcome(Verdict.CHANGED_ANSWER, why)
    before = _accepted(points)
    if before is not None and before.answers.digest != answers.digest:
        why = _moved(before.answers, answers)
        return Outcome(Verdict.CHANGED_ANSWER, why, None, before.night)
    return None


def _accepted(points: Sequence[Point]) -> Point | None:
    """The night whose answers are right: somebody accepted them last, or they were the first."""
    accepted = [point for point in points if point.is_accepted]
    first = [point for point in points if point.verdict is not Verdict.CHANGED_ANSWER]
    return accepted[-1] if accepted else first[0] if first else None


def _moved(before: Answers, now: Answers) -> str:
    words = "the same network answers the same data otherwise"
    if before.score is None or now.score is None or before.measure != now.measure:
        return words
    return f"{words}; {now.measure} was {_number(before.score)} and is {_number(now.score)}"


def _number(score: float | None) -> str:
    return "not known" if score is None else f"{score:.4g}"
