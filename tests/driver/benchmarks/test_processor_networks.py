"""`tilefarm bench processor --networks`: figures of made-up times, and who is refused."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest
from tilefarm.errors import SettingsError

from driver.benchmarks.processor.network_command import add_network_options, run_networks
from driver.benchmarks.processor.networks import (
    NetworkBench,
    NetworkSeconds,
    least_wall_seconds,
    network_figures,
    network_table,
)
from driver.program.onnx_runtime import layers_in


def seconds(name: str, ours: float, int8: float | None, threads: int = 1) -> NetworkSeconds:
    return NetworkSeconds(
        name=name,
        threads=threads,
        seconds=ours,
        int8_seconds=int8,
        float_seconds=None if int8 is None else 4 * int8,
        by_kernels=1.2,
        tuned_seconds=300.0,
    )


def test_goals_are_held_against_each_number_of_threads() -> None:
    measured = [
        seconds("resnet18", 1.0, 2.0),
        seconds("kws", 1.0, 0.9),
        seconds("kws", 1.0, 3.0, threads=2),
    ]
    figures = {each.name: each for each in network_figures(measured)}
    one = figures["times ONNX Runtime int8, 1 thread, mean"]
    assert one.value == pytest.approx(1.8**0.5)
    assert not one.is_met
    assert not figures["times ONNX Runtime int8, 1 thread, least"].is_met
    assert figures["times ONNX Runtime int8, 2 threads, mean"].is_met
    assert figures["times ONNX Runtime float32, 2 threads, mean"].value == pytest.approx(12)
    apart = figures["program against the sum of its kernels, furthest"]
    assert apart.value == pytest.approx(0.2)
    assert not apart.is_met
    assert figures["ResNet-18, file to program"].value == pytest.approx(5)


def test_searches_are_held_against_one_another() -> None:
    measured = [
        replace(seconds("kws", 1.0, None), again_seconds=0.98),
        replace(seconds("vww", 1.0, None), again_seconds=1.04),
        seconds("resnet8", 1.0, None),
    ]
    (twice,) = [each for each in network_figures(measured) if "twice" in each.name]
    assert twice.value == pytest.approx(1 - 1 / 1.04)
    assert not twice.is_met
    (longer,) = [each for each in network_figures(measured, longer=True) if "longer" in each.name]
    assert longer.value == pytest.approx(1 / 0.98 - 1)
    assert longer.is_met
    assert not [each for each in network_figures(measured[2:]) if "twice" in each.name]


def test_without_onnx_runtime_ours_is_told_alone() -> None:
    measured = [seconds("kws", 1e-3, None)]
    assert not [each for each in network_figures(measured) if "ONNX" in each.name]
    assert " 1000.0 " in "\n".join(network_table(measured))


def test_a_network_that_is_not_there_is_said(tmp_path: Path) -> None:
    bench = NetworkBench(folder=tmp_path, zoo=tmp_path, trials=1, say=lambda words: None)
    found = bench.measure("kws", 1)
    assert found.seconds is None
    (line,) = [line for line in network_table([found]) if line.startswith("kws")]
    assert "not measured" in line
    assert "kws_int8_qdq.onnx is not there" in line
    assert not [each for each in network_figures([found]) if each.goal and each.value]


def test_calls_take_turns() -> None:
    order: list[str] = []
    calls = [lambda: order.append("a"), lambda: order.append("b")]
    assert len(least_wall_seconds(calls, 2, 0.0)) == 2
    assert order == ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--networks", "none"], "--networks: no 'none'"),
        (["--networks", "kws", "--threads", "1,x"], "--threads: '1,x' is no list"),
        (["--networks", "kws", "--threads", "0"], "--threads: '0' is no list"),
    ],
)
def test_what_is_not_there_is_refused(words: list[str], said: str) -> None:
    parser = argparse.ArgumentParser()
    add_network_options(parser)
    with pytest.raises(SettingsError, match=said):
        run_networks(parser.parse_args(words))


def test_the_least_of_a_node_counts_whatever_else_a_profile_has() -> None:
    def event(name: str, microseconds: int) -> dict[str, object]:
        return {"cat": "Node", "name": name, "dur": microseconds, "args": {"op_name": "Conv"}}

    events = [
        event("a_kernel_time", 12),
        event("b_kernel_time", 5),
        event("a_kernel_time", 10),
        event("a_fence_before", 1),
        {"cat": "Session", "name": "model_run", "dur": 99},
    ]
    found = layers_in(events)
    assert [(each.name, each.operator) for each in found] == [("a", "Conv"), ("b", "Conv")]
    assert [each.seconds for each in found] == pytest.approx([1e-5, 5e-6])
