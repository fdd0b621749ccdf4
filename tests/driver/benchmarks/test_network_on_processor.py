"""`tilefarm bench network --target cpu` with a run that is made up: what is tuned, what is told."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kit.reports.profiles import timed_profile
from kit.reports.summaries import a_summary, by_the_clock
from tilefarm.errors import InfraError

from driver.benchmarks import network
from driver.benchmarks.network_on_processor import Tune, run_on_processor
from driver.report.profile import Profile
from driver.report.summary import RunSummary
from driver.report.terminal.ended import Ended, Listener
from driver.targets import playable_target
from driver.tune.settings import TuneSettings

PEAK = 80e9


def profile() -> Profile:
    """A convolution of 100 000 MACs in 10 us, and layers that multiply nothing."""
    timed = timed_profile("conv_1")
    layers = tuple(
        replace(each, macs=100_000 if each.layer == "conv_1" else 0) for each in timed.layers
    )
    return replace(timed, layers=layers, peak=PEAK)


def told(summary: RunSummary, heard: list[TuneSettings]) -> Tune:
    """Writes a report and ends with this summary."""

    def tune(settings: TuneSettings, listen: Listener) -> int:
        heard.append(settings)
        settings.out.mkdir(parents=True)
        (settings.out / "report.html").write_text("a report")
        listen(Ended(summary=summary, paths=(), seconds=1.0))
        return 0

    return tune


def given(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    network.add_arguments(parser)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(["zoo:digits", "--target", "cpu", "--trials", "3", *words])


def run(args: argparse.Namespace, summary: RunSummary) -> TuneSettings:
    heard: list[TuneSettings] = []
    assert run_on_processor(args, playable_target("cpu"), told(summary, heard)) == 0
    (settings,) = heard
    return settings


def test_layers_are_told_in_seconds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    summary = replace(by_the_clock(a_summary()), profile=profile())
    settings = run(given("--html", str(page), "--jobs", "2"), summary)
    assert (settings.farm.target, settings.farm.devices, settings.farm.workers) == ("cpu", 1, 2)
    assert settings.trials % 3 == 0
    assert settings.trials > 3, "so many for each workload"
    assert page.read_text() == "a report"
    lines = capsys.readouterr().out.splitlines()
    (conv,) = (line.split() for line in lines if line.startswith("conv_1"))
    assert conv[1:4] == ["conv2d", "10.0", "us"]
    assert conv[-3:] == ["10.0", "12.5", "%"]
    assert "20 trials, 1 failed" in lines[-3]
    assert lines[-2].startswith("812.3 us as one program, 1.5 GMAC/s; 0 of 100 samples differ")
    assert "cycle" not in "\n".join(lines)


def test_the_document_has_seconds_and_points(capsys: pytest.CaptureFixture[str]) -> None:
    run(given("--json"), replace(by_the_clock(a_summary()), profile=profile()))
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["program"]["seconds"] == 8.123e-4
    assert found["program"]["differing"] == 0
    (conv,) = (step for step in found["steps"] if step["name"] == "conv_1")
    assert conv["operator"] == "conv2d"
    assert conv["macs_per_second"] == pytest.approx(1e10)
    assert conv["of_peak"] == pytest.approx(0.125)
    assert found["seconds"] == pytest.approx(sum(s["median_seconds"] for s in found["steps"]))
    assert found["points"]["dense_1x4"] == {"tile_h": 4, "tile_w": 8}
    assert "cycles" not in json.dumps(found)


def test_a_run_without_a_profile_is_a_fault() -> None:
    with pytest.raises(InfraError, match="without a profile"):
        run(given(), by_the_clock(a_summary()))
