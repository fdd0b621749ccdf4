"""`tilefarm bench scripts`: a script as it is written, by default and at its best, each checked."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from kit.built import needs_simulator

from driver import cli
from driver.benchmarks import scripts
from driver.benchmarks.script_sources import STENCIL
from driver.benchmarks.scripts import Script

SMALL = Script(STENCIL, (6, 6), {"x": (8, 8)}, 0.0)


@needs_simulator
@pytest.mark.parametrize(("goal", "code"), [(0.0, 0), (1e9, 1)])
def test_rows_of_a_script_with_their_goal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], goal: float, code: int
) -> None:
    monkeypatch.setattr(scripts, "SCRIPTS", {"small": replace(SMALL, goal=goal)})
    words = ["bench", "scripts", "--points", "1", "--repeats", "3", "--json", "--gate"]
    assert cli.main(words) == code
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == [
        *(f"small: {what}" for what in ("plain", "default", "best")),
        "small: plain / best",
    ]
    assert 0 < rows["small: best"]["value"] <= rows["small: default"]["value"]
    gain = rows["small: plain"]["value"] / rows["small: best"]["value"]
    assert rows["small: plain / best"]["value"] == pytest.approx(gain)
