"""What goes before times: answers, models, machines; and a night judged from its history."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kit.reports.measured_nights import BEGAN, DAY, ROW, Measured, chosen
from kit.reports.row_nights import QUIET, SECONDS, RowNights
from tilefarm.digest import Digest

from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.judging.gates import Gates
from driver.jobs.nightly.judging.judged_row import judged, not_measured
from driver.jobs.nightly.judging.night_judge import NightJudge
from driver.jobs.nightly.judging.past import RowPast
from driver.jobs.nightly.records import Acceptance, Answers, Row, Sample, Verdict

SCHEDULES = Digest.of(b"A")


def test_another_answer_is_told_until_somebody_accepts_it() -> None:
    row = RowNights()
    row.night(1000)
    said = row.night(900, answer="no")
    assert said.verdict is Verdict.CHANGED_ANSWER
    assert said.why.startswith("the same network answers the same data otherwise; top-1 of labels")
    assert row.night(900, answer="no").verdict is Verdict.CHANGED_ANSWER
    assert row.night(1000).verdict is Verdict.UNCHANGED, "wrong cycles are no bar"
    row.accept("n0003")
    assert row.night(900, answer="no").verdict is Verdict.UNCHANGED


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (Answers(digest=SCHEDULES, differing=1), "1 sample differs from the integer reference"),
        (Answers(digest=SCHEDULES, differing=2), "2 samples differ from the integer reference"),
        (
            Answers(digest=SCHEDULES, measure="top-1", score=0.7),
            "top-1 is 0.7, below its gate of 0.75",
        ),
        (Answers(digest=SCHEDULES), "no measure is not known, below its gate of 0.75"),
        (Answers(digest=SCHEDULES, measure="top-1", score=0.75), ""),
    ],
)
def test_answers_are_checked_without_any_history(answers: Answers, why: str) -> None:
    sample = replace(Measured().sample("n", SCHEDULES), answers=answers)
    said = judged(sample, RowPast(), QUIET, Gates(least_score=0.75))
    assert (said.verdict is Verdict.CHANGED_ANSWER) == bool(why)
    assert not why or said.why == why


def test_another_model_begins_anew() -> None:
    before = Measured().sample("n1", SCHEDULES)
    order = replace(before.order, model=Digest.of(b"retrained"))
    said = judged(
        replace(before, night="n2", order=order), RowPast(samples=[before]), QUIET, Gates()
    )
    assert said.verdict is Verdict.INSUFFICIENT_HISTORY
    assert said.why == "the model or its data has changed: its first night"


def test_another_configuration_of_a_device_is_said() -> None:
    before = Measured().sample("n1", SCHEDULES)
    machine = replace(before.machine, configuration=Digest.of(b"another kernel"))
    said = judged(
        replace(before, night="n2", machine=machine), RowPast(samples=[before]), QUIET, Gates()
    )
    assert said.verdict is Verdict.DEVICE_CHANGED
    assert said.why.endswith("what changed: its configuration")
    assert not said.verdict.fails


def test_what_is_not_measured_says_why() -> None:
    said = not_measured("n", ROW, "board0 did not answer")
    assert said.verdict.fails
    assert said.why == "board0 did not answer"


def test_a_night_is_judged_from_its_history(tmp_path: Path) -> None:
    rows = [Row("digits", "cpu"), Row("digits2", "cpu")]
    with History(tmp_path / "history.sqlite", "zoo") as history:
        schedules = history.keep(chosen(1))

        def night(at: int, cost: float) -> list[Verdict]:
            name = history.begin(BEGAN + at * DAY).name
            judge = NightJudge(history, name)
            for row in rows:
                measured = Measured(clock=SECONDS, cost=cost, row=row, code=name, layers=False)
                sample = _again(measured.sample(name, schedules))
                history.add(sample)
                history.judge(judge.judged(sample, Gates()))
            return [each.verdict for each in history.verdicts(night=name)]

        assert {verdict for at in range(5) for verdict in night(at, 1 + 0.001 * (at % 3))} == {
            Verdict.INSUFFICIENT_HISTORY
        }
        assert night(5, 1.001) == [Verdict.UNCHANGED] * 2
        assert night(6, 1.05) == [Verdict.UNSTABLE] * 2
        assert night(7, 1.05) == [Verdict.SLOWER] * 2
        for row in rows:
            history.accept(
                Acceptance(row=row, night=history.nights()[-1].name, who="kim", when=BEGAN)
            )
        assert night(8, 1.05) == [Verdict.UNCHANGED] * 2
        again = NightJudge(history, history.nights()[7].name)
        sample = history.samples(night=history.nights()[7].name, row=rows[0])[0]
        assert again.judged(sample, Gates()).verdict is Verdict.SLOWER, "later nights do not count"


def _again(sample: Sample) -> Sample:
    return replace(sample, time=replace(sample.time, again=sample.time.cost))
