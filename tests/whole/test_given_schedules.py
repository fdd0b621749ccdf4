"""A program built again from the schedules that a run has left, and a search from there on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .foreground import Command

pytestmark = [pytest.mark.whole, pytest.mark.slow]


def test_a_program_is_built_again_and_then_searched_on(run: type[Command], tmp_path: Path) -> None:
    first, again = tmp_path / "first", tmp_path / "again"

    def tune(out: Path, *words: str) -> str:
        """What it says; it has to end well."""
        few = ["--no-ray", "--workers", "1", "--devices", "1", "--out", str(out)]
        code, said, err = run(["tune", "op:gemm m=16 n=16 k=16", *few, *words]).end()
        assert (code, err) == (0, ""), said
        return said

    def cycles(out: Path) -> int:
        number = json.loads((out / "summary.json").read_text())["network_cycles"]
        assert isinstance(number, int)
        return number

    tune(first, "--trials", "3")
    given = ["--schedules", str(first / "schedules.json")]
    tune(again, *given)
    assert cycles(again) == cycles(first)
    assert (again / "schedules.json").read_text() == (first / "schedules.json").read_text()
    # As where a session was killed in its search: the program is there, and nothing better may be.
    for _ in range(2):
        said = tune(again, *given, "--trials", "4")
        assert "stopped" not in said
        assert cycles(again) == cycles(first)
