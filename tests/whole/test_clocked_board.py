"""A board that counts no cycles, from the model's file to its program, and once more."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tilefarm.interpreter import python_command

FASTEST_SECONDS = 10_000 / 100e6
"""Of the demo's network, at the board's 100 MHz, which it waits for: no search has come near so few
cycles. Above that the host decides: even the program may seem faster than its kernels."""

pytestmark = [pytest.mark.whole, pytest.mark.slow, pytest.mark.timeout(1200)]


def demo(out: Path, *words: str) -> list[dict[str, Any]]:
    """What a demo tells, event by event; the summary last."""
    common = ("--json", "--no-ray", "--workers", "2", "--devices", "1", "--out", str(out))
    done = subprocess.run(
        python_command("-m", "driver.cli", "demo", *common, *words),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def steps(events: list[dict[str, Any]]) -> set[str]:
    return {event["step"] for event in events if event["event"] == "step_ended"}


def test_the_demo_on_a_board_without_counters(tmp_path: Path) -> None:
    board = tmp_path / "board"
    events = demo(board, "--trials", "100", "--runtime", "stand-in")
    assert {e["clock"] for e in events if e["event"] == "device_joined"} == {"seconds"}
    trials = [e for e in events if e["event"] == "trial" and e["status"] == "ok"]
    assert {e["cycles"] for e in trials} == {None}
    assert min(e["kernel_seconds"] for e in trials) > 0
    summary = events[-1]
    assert summary["best_cycles"] is summary["network_cycles"] is None
    assert min(summary["best_seconds"], summary["network_seconds"]) > FASTEST_SECONDS
    assert summary["speedup"] > 2, "five and more where nothing disturbs the clock"
    assert summary["accuracy"]["differing"] == 0
    manifest = (board / "program/manifest.json").read_bytes()

    again = demo(board, "--trials", "100", "--runtime", "stand-in")
    assert "run-off" not in steps(again), "the records know it"
    assert again[-1]["best_seconds"] == summary["best_seconds"]
    assert (board / "program/manifest.json").read_bytes() == manifest


def test_a_folder_of_the_other_clock_is_told_apart(tmp_path: Path) -> None:
    """As soon as the device is there, however long others would be waited for."""
    demo(tmp_path / "out", "--trials", "8")
    words = ("--trials", "16", "--device-wait", "300", "--runtime", "stand-in")
    with pytest.raises(AssertionError, match="this search has times in cycles, and the devices"):
        demo(tmp_path / "out", *words)
