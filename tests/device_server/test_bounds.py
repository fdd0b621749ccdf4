"""Every bound of the table holds, is the constant in the code, and does what its row says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.farm.attacks import ATTACKS, Found, Lab
from kit.farm.bounds import Bound, bounds, constant, growing, named_bounds, rows
from kit.farm.in_process import Farm

from .device import attacks as device_attacks  # noqa: F401
from .server import attacks as server_attacks  # noqa: F401
from .tracker import attacks as tracker_attacks  # noqa: F401

ROWS = {bound.what: bound for bound in bounds()}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    with Farm(tmp_path / "farm") as farm:
        (tmp_path / "lab").mkdir()
        yield Lab(tmp_path / "lab", monkeypatch, farm)


@pytest.mark.parametrize("bound", ROWS.values(), ids=lambda bound: bound.what)
def test_the_table_has_the_number_of_the_code(bound: Bound) -> None:
    assert constant(bound.constant) == bound.number


@pytest.mark.parametrize("what", ATTACKS)
def test_beyond_a_bound_happens_what_its_row_says(what: str, lab: Lab) -> None:
    found = ATTACKS[what](lab)
    row = ROWS[what]
    assert found == Found(row.beyond, row.heard)


def test_every_row_has_an_attack() -> None:
    assert ROWS.keys() == ATTACKS.keys()


def test_every_constant_that_is_called_a_bound_has_a_row() -> None:
    assert named_bounds() <= {bound.constant.strip("`") for bound in ROWS.values()}


def test_every_collection_that_grows_has_a_row_that_bounds_it() -> None:
    told = {collection.strip("`"): by for collection, by in rows("What grows")}
    assert told.keys() == growing()
    unbounded = [by for by in told.values() if by not in ROWS]
    assert all(by.startswith("nothing here: ") for by in unbounded), unbounded
