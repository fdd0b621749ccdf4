"""A row's command says what the row does not say itself, and nothing twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tilefarm.errors import TargetError

from driver.jobs.nightly.night.row_command import (
    CompilingPart,
    SearchPart,
    row_words,
    target_of,
    times_by_our_clock,
)
from driver.jobs.nightly.records import Row
from driver.jobs.nightly.zoo_file import ZooRow

ROW = ZooRow(row=Row("net", "sim"), model="net.onnx", words=("--target", "sim-pynq-z1"))
HERE = CompilingPart(processes=2)
CLUSTER = CompilingPart(processes=2, ray="auto")


def words(row: ZooRow, compiling: CompilingPart | None = None) -> str:
    return " ".join(row_words(row, Path("known.json"), Path("out"), compiling=compiling))


def test_without_more_it_builds_what_is_known() -> None:
    assert words(ROW) == (
        "tune net.onnx --target sim-pynq-z1 --schedules known.json --out out --trials 0"
    )


def test_the_search_comes_after_it() -> None:
    search = SearchPart(trials=7, seconds=60.0, seed=3, least_gain=0.5, records=Path("all.sqlite"))
    command = row_words(ROW, Path("known.json"), Path("out"), search=search)
    assert " ".join(command[-10:]) == (
        "--trials 7 --search-seconds 60.0 --search-seed 3 --least-gain 0.5 --records all.sqlite"
    )


@pytest.mark.parametrize(
    ("said", "compiling", "added"),
    [
        ((), HERE, ("--no-ray", "--workers", "2", "--devices", "2")),
        (("--workers", "1", "--devices", "1"), HERE, ("--no-ray",)),
        (("--tracker", "farm:1"), HERE, ("--no-ray", "--workers", "2")),
        (("--ray", "auto"), HERE, ("--devices", "2")),
        (("--target", "cpu"), HERE, ("--no-ray", "--workers", "2")),
        ((), CLUSTER, ("--ray", "auto", "--devices", "2")),
        (("--no-ray",), CLUSTER, ("--workers", "2", "--devices", "2")),
        (("--ray", "head:1"), CLUSTER, ("--devices", "2")),
    ],
)
def test_where_it_compiles_is_added_unless_the_row_says_so(
    said: tuple[str, ...], compiling: CompilingPart, added: tuple[str, ...]
) -> None:
    command = words(replace(ROW, words=said), compiling)
    assert command == (
        f"{' '.join(('tune net.onnx', *said, *added))} --schedules known.json --out out --trials 0"
    )


def test_our_own_clock_times_processors_here() -> None:
    assert times_by_our_clock(("--target", "cpu"))
    assert not times_by_our_clock(("--target", "cpu", "--tracker", "farm:1"))
    assert not times_by_our_clock(())


def test_a_target_is_read_as_the_command_reads_it() -> None:
    assert target_of(("--target", "cpu", "--threads", "2")) == target_of(("--target", "cpu@2"))
    with pytest.raises(TargetError):
        target_of(("--target", "nosuch"))
