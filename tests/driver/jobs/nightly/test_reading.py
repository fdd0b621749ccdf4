"""From a history to what people see: the verdicts, and why; kernels are kept where they change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kit.reports.measured_nights import BEGAN, DAY, ROW, Measured, chosen
from tilefarm.digest import Digest

from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.history.kernels import keep_kernels, kept_kernels
from driver.jobs.nightly.page import write_site
from driver.jobs.nightly.reading import HistoryReader
from driver.jobs.nightly.records import Adoption, Judged, Pass, Verdict
from driver.jobs.nightly.why import Evidence
from driver.jobs.nightly.zoo_history import LAYER_NIGHTS

TARGET = Digest.of(b"target")


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path / "history.sqlite", "zoo") as opened:
        yield opened


def kernel(lowered: str) -> bytes:
    return Evidence(workload=chosen(3)[1].workload.name, lowered=lowered).content


def test_a_kernel_is_kept_where_it_is_another_one(history: History) -> None:
    nights = [history.begin(BEGAN + at * DAY).name for at in range(5)]
    history.keep(chosen(3))
    one = chosen(3)[1]
    assert kept_kernels(history, nights[0], TARGET, [one]) == {}
    texts = ["a", "a", "b", "b", "a"]
    news = [
        keep_kernels(history, night, TARGET, {one: kernel(text)})
        for night, text in zip(nights, texts, strict=True)
    ]
    assert news == [1, 0, 1, 0, 1]
    for night, text in zip(nights, texts, strict=True):
        assert kept_kernels(history, night, TARGET, [one]) == {one: kernel(text)}
    assert keep_kernels(history, nights[2], TARGET, {one: kernel("b")}) == 0
    other = Digest.of(b"another target")
    assert kept_kernels(history, nights[4], other, [one]) == {}


def test_a_slower_night_says_which_code_is_another(history: History, tmp_path: Path) -> None:
    schedules, one = history.keep(chosen(3)), chosen(3)[1]
    nights = [history.begin(BEGAN + at * DAY).name for at in range(2)]
    for at, night in enumerate(nights):
        history.add(Measured(cost=1000.0 + 100 * at).sample(night, schedules, BEGAN + at * DAY))
        keep_kernels(history, night, TARGET, {one: kernel("ab"[at])})
    history.adopt(Adoption(row=ROW, night=nights[0], schedules=schedules, who="us", when=BEGAN))
    history.judge(
        Judged(
            night=nights[1],
            row=ROW,
            verdict=Verdict.SLOWER,
            change=0.1,
            against=nights[0],
            why="100 cycles more",
        )
    )
    zoo = HistoryReader(history=history).zoo()
    (row,) = zoo.rows
    lines = row.lines(row.judged[-1])
    assert lines[0] == "100 cycles more"
    assert "conv takes 50 cycles more (+10.0 %)" in lines
    assert "1 workload of the same schedule with other code" in lines
    assert set(row.schedules) == set(chosen(3))
    text = write_site(zoo, tmp_path / "page").read_text("utf-8")
    assert "conv takes 50 cycles more" in text


def test_a_change_is_explained_by_the_sample_of_the_same_schedules(history: History) -> None:
    """The night before has measured two sets: the known ones and those that it adopted."""
    old, new = history.keep(chosen(3)), history.keep(chosen(4))
    nights = [history.begin(BEGAN + at * DAY).name for at in range(2)]
    history.add(Measured(cost=2000.0).sample(nights[0], old))
    history.add(replace(Measured(cost=1000.0).sample(nights[0], new), part=Pass.FOUND))
    history.add(Measured(cost=1100.0).sample(nights[1], new))
    judged = Judged(night=nights[1], row=ROW, verdict=Verdict.SLOWER, against=nights[0])
    lines = HistoryReader(history=history).explanation(judged).lines
    assert lines == ("conv takes 50 cycles more (+10.0 %)",)


def test_nothing_is_explained_where_nothing_was_measured(history: History) -> None:
    night = history.begin(BEGAN).name
    judged = Judged(night=night, row=ROW, verdict=Verdict.NOT_MEASURED, why="no device")
    history.judge(judged)
    (row,) = HistoryReader(history=history).zoo().rows
    assert row.lines(judged) == ["no device"]


def test_nights_are_in_their_order_though_the_clock_went_back(history: History) -> None:
    schedules = history.keep(chosen(3))
    for began in (BEGAN, BEGAN - DAY):
        history.add(Measured().sample(history.begin(began).name, schedules))
    (row,) = HistoryReader(history=history).zoo().rows
    assert [sample.night for sample in row.known] == [night.name for night in history.nights()]


def test_layers_of_old_nights_are_read_where_something_is_explained(history: History) -> None:
    schedules = history.keep(chosen(3))
    nights = [history.begin(BEGAN + at * DAY).name for at in range(LAYER_NIGHTS + 2)]
    for at, night in enumerate(nights):
        history.add(Measured(cost=1000.0 + 100 * (at == 1)).sample(night, schedules))
    judged = Judged(night=nights[1], row=ROW, verdict=Verdict.SLOWER, against=nights[0])
    history.judge(judged)
    (row,) = HistoryReader(history=history).zoo().rows
    assert [bool(sample.time.layers) for sample in row.samples] == 2 * [False] + LAYER_NIGHTS * [
        True
    ]
    assert row.lines(judged) == ["conv takes 50 cycles more (+10.0 %)"]
