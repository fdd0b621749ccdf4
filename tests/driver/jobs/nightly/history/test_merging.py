"""Two histories make one: whichever comes first, and however often."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.reports.measured_nights import BEGAN, DAY, ROW, Measured, chosen
from tilefarm.digest import Digest
from tilefarm.errors import OutputError

from driver.jobs.nightly.history.history import History
from driver.jobs.nightly.history.kernels import keep_kernels, kept_kernels
from driver.jobs.nightly.history.merging import merge
from driver.jobs.nightly.records import Acceptance, Adoption, Judged, Row, Sample, Verdict

Write = Callable[[History], None]

NUMBERS = st.integers(0, 2)


def nightly(start: int, cost: int, verdict: Verdict, ended: float) -> Write:
    """A night with a sample, a verdict, a kernel, an adoption and an acceptance."""

    def write(history: History) -> None:
        night = history.begin(BEGAN + start * DAY)
        schedules = history.keep(chosen(cost))
        sample = Measured(cost=100 + cost).sample(night.name, schedules, BEGAN + ended)
        history.add(sample)
        history.judge(Judged(night=night.name, row=ROW, verdict=verdict, change=cost / 100))
        keep_kernels(history, night.name, Digest.of(b"t"), {chosen(cost)[0]: b"code%d" % cost})
        history.adopt(
            Adoption(row=ROW, night=night.name, schedules=schedules, who="search", when=ended)
        )
        history.accept(Acceptance(row=ROW, night=night.name, who="kim", when=ended))
        if ended:
            history.end(night.name, BEGAN + ended, "killed" if cost else "")

    return write


WRITES = st.lists(
    st.builds(nightly, NUMBERS, NUMBERS, st.sampled_from(Verdict), st.floats(0, 2)), max_size=4
)


def known(history: History) -> list[Any]:
    """Everything that a history says."""
    nights = history.nights()
    return [
        nights,
        history.samples(layers=True),
        history.verdicts(),
        history.adoptions(),
        history.acceptances(),
        [history.schedules(digest) for digest in history.schedule_sets()],
        [
            kept_kernels(history, night.name, Digest.of(b"t"), chosen(number))
            for night in nights
            for number in range(3)
        ],
    ]


@contextmanager
def histories(folder: Path, *writes: list[Write]) -> Iterator[list[History]]:
    opened = [History(folder / f"{number}.sqlite", "zoo") for number in range(len(writes))]
    try:
        for history, those in zip(opened, writes, strict=True):
            for write in those:
                write(history)
        yield opened
    finally:
        for history in opened:
            history.close()


@settings(
    max_examples=examples(12),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(WRITES, WRITES, WRITES)
def test_the_order_of_merging_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, one: list[Write], two: list[Write], three: list[Write]
) -> None:
    folder = tmp_path_factory.mktemp("merged")
    with histories(folder, one, two, three, [], []) as (a, b, c, left, right):
        for each in (a, b, c):
            merge(left, each)
        alone = known(left)
        assert merge(left, b) == merge(left, left) == 0
        assert known(left) == alone
        merge(b, c)  # associative: (a, (b, c)), and commutative
        for each in (b, a):
            merge(right, each)
        assert known(right) == alone


def test_of_two_measurements_the_later_one_stays(tmp_path: Path) -> None:
    early, late = (nightly(0, cost, Verdict.UNCHANGED, ended=cost) for cost in (1, 2))
    with histories(tmp_path, [early], [late]) as (one, other):
        assert merge(one, other) == 1
        assert [sample.time.cost for sample in one.samples()] == [102]


def test_machines_of_one_night_are_both_kept(tmp_path: Path) -> None:
    def measured(machine: str) -> Write:
        def write(history: History) -> None:
            night = history.begin(BEGAN).name
            history.add(Measured(machine=machine).sample(night, history.keep(chosen(1))))

        return write

    with histories(tmp_path, [measured("a")], [measured("b")]) as (one, other):
        assert merge(one, other) == 1
        assert {sample.machine.name for sample in one.samples()} == {"a", "b"}


def test_histories_of_two_zoos_are_not_one(tmp_path: Path) -> None:
    with (
        History(tmp_path / "a.sqlite", "zoo") as one,
        History(tmp_path / "b.sqlite", "other") as other,
        pytest.raises(OutputError, match="is the history of zoo 'zoo', not of 'other'"),
    ):
        merge(one, other)


def test_a_damaged_history_leaves_the_other_as_it_is(tmp_path: Path) -> None:
    def many(history: History) -> None:
        for number in range(50):
            night = history.begin(BEGAN + number * DAY).name
            sample: Sample = Measured(row=Row(f"m{number}", "t")).sample(
                night, history.keep(chosen(number))
            )
            history.add(sample)

    with histories(tmp_path, [many], [nightly(0, 1, Verdict.SLOWER, 1.0)]) as (_, one):
        before = known(one)
        path = tmp_path / "0.sqlite"
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        content = bytearray(path.read_bytes())
        content[8 * 4096 : 12 * 4096] = bytes(4 * 4096)
        path.with_name("damaged.sqlite").write_bytes(content)
        with (
            History(tmp_path / "damaged.sqlite", read_only=True) as damaged,
            pytest.raises(OutputError, match="damaged"),
        ):
            merge(one, damaged)
        assert known(one) == before
