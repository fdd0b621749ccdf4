"""`tilefarm bench large`: its figures beside their goals, and what the command makes of them."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tilefarm.clock import SystemClock
from tilefarm.errors import InfraError

from driver import cli
from driver.benchmarks import large
from driver.benchmarks.large import LargeRun
from driver.benchmarks.process_watch import ProcessWatch, proportional_nbytes

GOOD = LargeRun(
    seconds=120.0,
    by_step={"import": 1.0, "search": 60.0},
    processor_seconds=200.0,
    largest_nbytes=1500 << 20,
    together_nbytes=1900 << 20,
    differing=0,
)


@pytest.mark.parametrize(
    ("run", "missed"),
    [
        (GOOD, []),
        (replace(GOOD, seconds=301.0), ["file to program"]),
        (replace(GOOD, largest_nbytes=2049 << 20), ["largest process"]),
        (replace(GOOD, differing=1), ["samples that differ"]),
    ],
)
def test_a_goal_is_met_or_missed(
    run: LargeRun,
    missed: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert [figure.name for figure in run.figures() if not figure.is_met] == missed
    asked: list[tuple[str, int, int]] = []

    def measured(name: str, trials: int, samples: int, _clock: object) -> LargeRun:
        asked.append((name, trials, samples))
        return run

    monkeypatch.setattr(large, "measure", measured)
    assert cli.main(["bench", "large", "vgg19", "--samples", "2"]) == 0
    assert asked == [("vgg19", 300, 2)]
    assert ("missed" in capsys.readouterr().out) is bool(missed)
    assert cli.main(["bench", "large", "vgg19", "--gate", "--json"]) == int(bool(missed))
    rows = json.loads(capsys.readouterr().out)["networks"]["vgg19"]
    assert [row["name"] for row in rows if row["met"] is False] == missed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["vgg16"], "no network 'vgg16'"),
        (["--trials", "0"], "--trials: '0' is not a whole number from 1 on"),
        (["--samples", "0"], "--samples: '0' is not a whole number from 1 on"),
    ],
)
def test_bad_options_are_told(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "large", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_command_that_fails_is_told_with_its_reason(tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(b"nonsense")
    with pytest.raises(InfraError, match=r"tilefarm tune model\.onnx failed: .*not an ONNX file"):
        large.tuned(model, ["--json", "--out", str(tmp_path / "out")], SystemClock())


def test_processes_are_watched() -> None:
    assert proportional_nbytes(os.getpid()) > 1 << 20
    assert proportional_nbytes(1 << 30) == 0
    with ProcessWatch(os.getpid()) as watch:
        held = np.ones(4 << 20)
        while not watch.processor_seconds:
            held += 1
    assert watch.together_nbytes > 32 << 20
    assert watch.largest_nbytes >= watch.together_nbytes // 2
