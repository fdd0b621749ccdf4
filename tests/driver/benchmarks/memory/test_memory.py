"""`bench memory`: its rows, and that generated problems are what they say."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from kit.allocating import no_allocator
from kit.built import require
from tilefarm.errors import DataError, SettingsError

from driver.benchmarks.memory import (
    challenging,
    choices,
    command,
    everyday,
    networks,
    orders,
    schedules,
    tight,
)


@pytest.fixture(autouse=True)
def _allocator() -> None:
    require(no_allocator)


@pytest.mark.parametrize("name", tight.SHAPES)
def test_a_cut_memory_is_full_at_every_moment(name: str) -> None:
    intervals = tight.cut(200, tight.SHAPES[name], 1)
    assert 150 < len(intervals) <= 205
    for moment in range(0, 2000, 50):
        alive = [each.nbytes for each in intervals if each.lower <= moment < each.upper]
        assert sum(alive) == tight.CAPACITY_NBYTES


def test_rows_with_goals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(everyday, "GRAPHS", 5)
    monkeypatch.setattr(tight, "COUNTS", (20,))
    monkeypatch.setattr(orders, "SEEDS", {"random wires": 1, "searched cells": 1})
    monkeypatch.setattr(schedules, "GRAPHS", 1)
    monkeypatch.setattr(schedules, "LARGE", {20: 60.0})
    monkeypatch.setattr(choices, "GRAPHS", 6)
    args = argparse.Namespace(files=None, zoo=None, json=True, gate=True)
    code = command.run(args)
    groups = json.loads(capsys.readouterr().out)["groups"]
    rows = {row["name"]: row for figures in groups.values() for row in figures}
    assert code == any(row["met"] is False for row in rows.values())
    assert rows["proven"]["value"] == rows["proven"]["goal"] == 5
    assert rows["solved"]["value"] == 100
    assert rows["proven orders"]["value"] == 2
    assert rows["20 operations"]["value"] > 0
    assert rows["breadth-first, all"]["value"] > rows["as written, all"]["value"] > 1
    args = argparse.Namespace(files=None, zoo=None, json=False, gate=False)
    assert command.run(args) == 0
    assert "mean of a graph" in capsys.readouterr().out


def test_a_folder_without_the_suite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"A\.1048576\.csv"):
        challenging.figures(tmp_path, lambda: 0.0)


def test_a_zoo_without_its_models_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"vww_int8_qdq\.onnx is not there"):
        networks.figures(tmp_path)
