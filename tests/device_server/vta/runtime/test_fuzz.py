"""The fuzzer of instruction streams, for a while."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tilefarm

import device_server

ROOT = Path(__file__).parents[4]


def fuzz(seconds: float, seed: int) -> None:
    roots = [ROOT, *(Path(p.__path__[0]).parent for p in (tilefarm, device_server))]
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "tests.device_server.vta.runtime.fuzz_streams"),
            *("--seconds", str(seconds), "--seed", str(seed)),
        ],
        env={**os.environ, "PYTHONPATH": ":".join(map(str, roots))},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "result" in ended.stdout
    assert "error" in ended.stdout


def test_no_stream_crashes_or_hangs_the_simulator() -> None:
    fuzz(seconds=10, seed=1)


@pytest.mark.slow
def test_no_stream_crashes_or_hangs_the_simulator_for_a_minute() -> None:
    fuzz(seconds=60, seed=2)
