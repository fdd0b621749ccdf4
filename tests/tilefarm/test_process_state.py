"""What Linux says of a process."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tilefarm.process_state import process_state

TICKS = os.sysconf("SC_CLK_TCK")


def test_fields_are_those_behind_a_name_of_any_characters(tmp_path: Path) -> None:
    fields = [*"7", "(a) b)", "S", "5", *["0"] * 9]
    fields += [str(seconds * TICKS) for seconds in (3, 4, 5, 6)]
    fields += [*["0"] * 4, "99", *["0"] * 16, "2", "0"]
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text(" ".join(fields))
    state = process_state(7, tmp_path)
    assert (state.does, state.parent, state.began_ticks, state.core) == ("S", 5, 99, 2)
    assert (state.user_seconds, state.system_seconds, state.children_seconds) == (3, 4, 11)
    assert state.seconds == 7


def test_this_process_has_its_parent_and_computes() -> None:
    state = process_state(os.getpid())
    assert (state.does, state.parent) == ("R", os.getppid())
    assert state.core in range(os.cpu_count() or 1)
    assert 0 < state.seconds <= time.process_time() + 2 / TICKS


@pytest.mark.parametrize("told", [None, "", "7 (a) R 5 0"])
def test_of_whom_nothing_is_told_there_is_no_state(told: str | None, tmp_path: Path) -> None:
    if told is not None:
        (tmp_path / "7").mkdir()
        (tmp_path / "7" / "stat").write_text(told)
    with pytest.raises(OSError, match="7"):
        process_state(7, tmp_path)
