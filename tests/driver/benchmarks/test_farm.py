"""`tilefarm bench farm`: what counts as busy, goals, bottlenecks, and a small farm in earnest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from tilefarm.digest import Digest
from tilefarm.measurement import Status, Trial

from driver.benchmarks.farm.asleep import kernel_seconds
from driver.benchmarks.farm.busy import TimeShares, TrialSeconds, path, runs_per_second, shares
from driver.benchmarks.farm.clients import LeaseLoad, percentile
from driver.benchmarks.farm.figures import board_figures, limits, real_figures
from driver.benchmarks.farm.real import RealFigures
from driver.benchmarks.farm.scale import FarmScale, ScaleFigures, TrackerFigures, TrackerLoad
from driver.benchmarks.farm.searching import FarmSearch, ProcessorSeconds
from driver.benchmarks.farm.usage import tree_seconds
from driver.cli import main
from driver.run_events import Span

TRIAL = Trial(workload=Digest.of(b"w"), trace=Digest.of(b"t"), point=(), status=Status.OK)
SEARCHED = FarmSearch(
    devices=1,
    trials=(),
    spans=(),
    built=(),
    began=0.0,
    ended=10.0,
    kernels=(0.0,),
    processor=ProcessorSeconds(threads={}, driver=1.0, farm=0.0),
)
PATH = TrialSeconds(propose=0.001, compile=0.1, transfer=0.002, run=0.01, kernel=0.009)


def on_device(transfer: float, run: float, end: float) -> tuple[Span, Span]:
    return (
        Span(lane="a", kind="transfer", label="", begin_seconds=transfer, end_seconds=run),
        Span(lane="a", kind="run", label="", begin_seconds=run, end_seconds=end),
    )


def test_a_device_is_idle_only_while_a_compiled_candidate_waits() -> None:
    spans = (*on_device(1.0, 2.0, 5.0), *on_device(7.0, 7.0, 10.0))
    done = replace(SEARCHED, spans=spans, built=(1.0, 6.0))
    # Candidates are there from 1 to 5 and from 6 to 10; from 6 to 7 one waits.
    assert shares(done) == TimeShares(in_hand=7 / 8, running=6 / 8, of_all=6 / 10)
    assert shares(replace(done, devices=2)).in_hand == 7 / 8, "the second had nothing to do"
    assert runs_per_second(done) == 2 / 10
    assert runs_per_second(replace(done, ended=8.0)) == 1 / 8
    assert shares(replace(SEARCHED, spans=())) == TimeShares(in_hand=0.0, running=0.0, of_all=0.0)


def test_what_does_not_compile_waits_for_no_device() -> None:
    failed = replace(TRIAL, status=Status.COMPILE_ERROR, spans=(("compile", 1.0, 2.0),))
    done = replace(SEARCHED, spans=on_device(5.0, 5.0, 10.0), built=(2.0, 5.0), trials=(failed,))
    assert shares(done) == TimeShares(in_hand=1.0, running=1.0, of_all=0.5)


def test_the_overhead_of_a_trial_is_all_but_compile_and_kernel() -> None:
    spans = (
        ("propose", 0.0, 0.5),
        ("compile", 1.0, 3.0),
        ("transfer", 3.0, 4.0),
        ("run", 4.0, 9.0),
    )
    found = path(replace(SEARCHED, trials=(replace(TRIAL, spans=spans),), kernels=(4.0,)))
    assert found == TrialSeconds(propose=0.5, compile=2.0, transfer=1.0, run=5.0, kernel=4.0)
    assert found.overhead == 2.5


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(n) for n in range(1, 201)]
    assert (percentile(values, 50), percentile(values, 99), percentile(values, 100)) == (
        100.0,
        198.0,
        200.0,
    )
    assert percentile([3.0], 1) == 3.0
    assert percentile([], 99) != percentile([], 99), "not a number"


def test_a_process_that_ended_still_counts_with_its_parent() -> None:
    before = tree_seconds([os.getpid()])
    burn = "import time\nwhile time.process_time() < 0.2: pass"
    child = subprocess.run([sys.executable, "-S", "-c", burn], check=True, stdin=subprocess.DEVNULL)
    assert child.returncode == 0
    assert tree_seconds([os.getpid()]) - before >= 0.15
    assert tree_seconds([]) == 0.0


def test_goals_are_met_or_missed() -> None:
    good = RealFigures(
        trials=100,
        seconds=4.0,
        shares=TimeShares(in_hand=0.99, running=0.5, of_all=0.4),
        path=PATH,
        driver_seconds=0.002,
        farm_seconds=0.0035,
        kernel_seconds=0.0006,
    )
    assert all(figure.is_met for figure in real_figures(good))
    slow = replace(good, seconds=6.0, farm_seconds=0.0037)
    missed = [figure.name for figure in real_figures(slow) if not figure.is_met]
    assert missed == ["trials", "farm's processor"]
    assert all(figure.is_met for figure in board_figures(good.shares))
    idle = replace(good.shares, in_hand=0.97)
    assert [f.name for f in board_figures(idle) if not f.is_met] == ["devices with a candidate"]


def test_the_scarcest_resource_comes_first() -> None:
    scale = FarmScale(devices=100, workers=4, seconds=1.0, kernel_seconds=10.0, compile_seconds=0.1)
    half = TrackerLoad(processor_seconds=5.0, seconds=10.0)
    found = ScaleFigures(
        storm_seconds=1.0,
        tracker=TrackerFigures(
            start_nbytes=40 << 20,
            peak_nbytes=48 << 20,
            beating=half,
            leasing=half,
            saturating=half,
            searching=half,
        ),
        needed=LeaseLoad(acquire_seconds=(0.01,), seconds=1.0),
        saturated=LeaseLoad(acquire_seconds=(0.01,), seconds=1.0),
        done=replace(SEARCHED, built=(-1.0,) + (0.0,) * 100),
    )
    assert [(limit.resource, round(limit.devices)) for limit in limits(scale, found)] == [
        ("a core for the tracker", 200),
        ("4 compile workers", 400),
        ("a core for the driver", 1000),
        ("200 MiB for the tracker", 2000),
    ]


def test_kernels_sleep_between_half_and_one_and_a_half_of_the_mean() -> None:
    slept = [kernel_seconds(Digest.of(bytes([n])), 2.0) for n in range(256)]
    assert 1.0 <= min(slept) < 1.1
    assert 2.9 < max(slept) <= 3.0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--devices", "0"], "--devices 0: must be above 0"),
        (["--kernel-seconds", "nan"], "--kernel-seconds nan: must be above 0"),
        (["--seconds", "1e30"], "--seconds 1e+30: must be above 0 and below 1e+06"),
        (["--trials", "-1"], "argument --trials: '-1' is not a whole number from 0 on"),
    ],
)
def test_impossible_farms_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "farm", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_small_farm_in_earnest(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--devices", "3", "--workers", "2", "--seconds", "2", "--kernel-seconds", "0.3"]
    assert main(["bench", "farm", *words, "--trials", "12", "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    figures = {row["name"]: row["value"] for row in found["simulated"]}
    assert figures["trials"] > 0
    assert figures["leases, as needed"] == pytest.approx(10, rel=0.5)
    assert figures["leases, as many as can be"] > 0
    assert 0 < figures["  median"] <= figures["  99 of 100"]
    assert 0 < figures["devices in a run"] <= figures["devices with a candidate"] <= 100
    assert figures["  kernel"] == pytest.approx(300, rel=0.5)
    assert {row["name"] for row in found["real"]} >= {"trials", "farm's processor"}
    uploads = {row["name"]: row["value"] for row in found["real"]}
    assert min(uploads[name] for name in ("upload", "  device's processor")) > 0
    assert {row["name"] for row in found["boards"]} >= {"devices with a candidate"}
    assert min(row["devices"] for row in found["limits"]) > 0
