"""The fuzzer of instruction streams: some hundreds, and others for a while."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tilefarm

import device_server

ROOT = Path(__file__).parents[4]


def fuzz(seed: int, *most: str) -> None:
    roots = [ROOT, *(Path(p.__path__[0]).parent for p in (tilefarm, device_server))]
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "tests.device_server.vta.runtime.fuzz_streams"),
            *("--seed", str(seed), *most),
        ],
        env={**os.environ, "PYTHONPATH": ":".join(map(str, roots))},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, f"seed {seed}: {ended.stdout}{ended.stderr}"
    assert "result" in ended.stdout
    assert "error" in ended.stdout


def test_no_stream_crashes_or_hangs_the_simulator() -> None:
    fuzz(1, "--cases", "900")


@pytest.mark.slow
def test_no_stream_crashes_or_hangs_the_simulator_for_a_while() -> None:
    """Streams of one seed; `FUZZ_SEED` makes others."""
    fuzz(int(os.environ.get("FUZZ_SEED", "1")), "--seconds", "20")
