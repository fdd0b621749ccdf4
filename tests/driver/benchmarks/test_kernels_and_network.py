"""Benchmarks of cycles from the command line, with the fewest trials; and what their tables say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tilefarm.measurement import Counters
from tilefarm.target import TARGETS
from tilefarm.trace import Step, Trace

from compile_worker.space import generate
from device_server.vta.library.library import VtaLibrary
from driver import cli
from driver.benchmarks import kernels, network
from driver.benchmarks.kernels import KernelFigures
from driver.benchmarks.network import NetworkFigures, StepFigures
from driver.benchmarks.search import best_point
from driver.benchmarks.tuning import TuningTask, tune_workload
from driver.benchmarks.workload_runner import FailedSchedule, KernelMeasurement, WorkloadRunner
from driver.program.simulated import WholeRun
from driver.program.vta.cycle_breakdown import CycleBreakdown
from driver.program.vta.layers import RESNET18, LayerVariant

SIM = TARGETS["sim"]


def measured(cycles: int) -> KernelMeasurement:
    spent = CycleBreakdown(gemm=cycles - 10, idle=10)
    return KernelMeasurement(
        spent=spent, instructions=1, read_nbytes=2, written_nbytes=3, is_right=True, streams=1
    )


def document(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    assert cli.main(["bench", *words, "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_layer_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "kernels", "--layers", "C10", "--trials", "2")
    (layer,) = found["layers"]
    assert (layer["ideal"], layer["bound"], layer["old"]) == (25_088, 31_360, 37_817)
    assert layer["trials"] == 2
    assert layer["bound"] <= layer["given_old"] < 1.2 * layer["old"]
    assert layer["cycles"] == sum(layer["best"]["spent"].values())


def test_a_layer_with_weights_of_16_bits(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--bias", "--wide", "--layers", "C10", "--trials", "2")
    found = document(capsys, "kernels", *words)
    assert found["epilogue"]["wide"]
    (layer,) = found["layers"]
    assert (layer["ideal"], layer["bound"], layer["old"]) == (50_176, 61_152, None)
    assert layer["bound"] <= layer["cycles"] == sum(layer["best"]["spent"].values())


def test_a_layer_within_a_border_has_the_limits_of_one_without(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("kernels", "--bias", "--layers", "D7", "--trials", "2")
    plain = document(capsys, *words)["layers"][0]
    found = document(capsys, *words, "--border")
    assert found["epilogue"]["border"]
    (layer,) = found["layers"]
    assert (layer["ideal"], layer["bound"]) == (plain["ideal"], plain["bound"])
    assert layer["cycles"] < 1.02 * plain["cycles"]
    assert layer["best"]["written_nbytes"] == plain["best"]["written_nbytes"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("kernels", "--layers", "C1"), "there is no layer 'C1'"),
        (("kernels", "--trials", "0"), "argument --trials: '0' is not a whole number from 1 on"),
        (("network", "--jobs", "0"), "argument --jobs: '0' is not a whole number from 1 on"),
        (("network", "zoo:vgg"), "zoo:vgg: no such network"),
    ],
)
def test_options_are_checked(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    assert cli.main(["bench", *words]) == 2
    assert why in capsys.readouterr().err


def test_tables_of_layers() -> None:
    layer = KernelFigures(
        name="C2", ideal=900, bound=1000, old=1100, given_old=1060, best=measured(1050), point={},
        trials=5, failed=1,
    )  # fmt: skip
    lines = list(kernels.tables([layer, layer], 5))
    assert lines[2].split() == [
        "C2",
        "900",
        "1000",
        "1100",
        "1060",
        "1050",
        "+5.00",
        "%",
        "-4.55",
        "%",
    ]
    assert lines[4].split()[:6] == ["sum", "1800", "2000", "2200", "2120", "2100"]
    assert lines[-1].split()[-1] == "2100"
    assert list(kernels.tables([], 5)) == []


def test_a_search_is_seeded_and_counts_its_trials() -> None:
    workload = RESNET18["C10"].workload(SIM, LayerVariant())
    made = generate(workload, SIM)
    told: list[tuple[int, int]] = []
    finds = []
    for _ in range(2):
        bench = WorkloadRunner(VtaLibrary(), workload, SIM, 0)
        finds.append(
            best_point(made, bench, trials=6, seed=4, told=lambda *args: told.append(args))
        )
    assert finds[0] == finds[1]
    assert finds[0] is not None
    assert finds[0].trials == 6
    assert told[-1] == (6, finds[0].cycles)


def test_a_schedule_that_fails_is_not_a_time() -> None:
    workload = RESNET18["C10"].workload(SIM, LayerVariant())
    bench = WorkloadRunner(VtaLibrary(), workload, SIM, 0)
    refused = bench.cycles(Trace((Step("split", ("out_co", 3)),)))
    assert isinstance(refused, FailedSchedule)
    assert "step 1, split('out_co', 3)" in refused.why


def test_starts_are_measured_first() -> None:
    workload = RESNET18["C10"].workload(SIM, LayerVariant())
    made = generate(workload, SIM)
    start = tuple((v.name, dict(made.space.default)[v.name]) for v in made.space.tunables)
    found = tune_workload(
        TuningTask(workload=workload, target=SIM, trials=1, seed=0, starts=(start,))
    )
    assert not isinstance(found, FailedSchedule)
    assert found.point == start
    assert found.measured.is_right
    assert found.bound <= found.measured.cycles


@pytest.mark.slow
def test_a_network_from_the_command_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "digits.html"
    words = ("network", "zoo:digits", "--trials", "1", "--jobs", "2", "--html", str(page))
    found = document(capsys, *words)
    assert found["program"]["differing"] == 0
    assert found["cycles"] == sum(step["cycles"] for step in found["steps"])
    assert 0 < found["program"]["counters"]["cycles"] < 1.1 * found["cycles"]
    assert "conv3" in page.read_text()


def test_tables_of_a_network() -> None:
    steps = (
        StepFigures(name="in", workload="w0", operator="quantize", place="cpu", why="no cast"),
        StepFigures(
            name="conv", workload="w1", operator="conv2d", place="accelerator", why="", bound=90,
            spent=CycleBreakdown(gemm=80, token=20),
        ),
    )  # fmt: skip
    whole = WholeRun(counters=Counters(cycles=98, instructions=7), differing=0, arena_nbytes=1)
    figures = NetworkFigures(name="net", steps=steps, whole=whole, trials=3, failed=0)
    lines = list(network.tables(figures))
    assert lines[1].split() == ["in", "quantize"]
    assert lines[2].split()[:4] == ["conv", "conv2d", "90", "80"]
    assert lines[3].split()[-1] == "100"
    assert lines[-1] == "on the processor: in (quantize)"
    assert "98 cycles as one program of 7 instructions; 0 output" in lines[-2]
    on_board = replace(figures, board=TARGETS["pynq-z1"].board)
    assert "that is about 0.00098 ms at 100 MHz" in list(network.tables(on_board))
    document = network.document(on_board, {})
    assert document["board"]["clock_mhz"] == 100
    assert document["program"]["counters"]["cycles"] == 98
