"""`tilefarm bench quantize`: turns, the least of them, goals beside ratios, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from driver import cli
from driver.benchmarks import quantize
from driver.benchmarks.quantize import PLAINEST, QuantizationTimes, Seconds, in_turns
from driver.network.quantize.options import AS_USUAL, Quantization


def compared(ratio: float, plainest: float = 2.0) -> QuantizationTimes:
    plain, usual = (Seconds(wall=s, processor=2 * s) for s in (plainest, plainest * ratio))
    return QuantizationTimes(plainest=plain, usual=usual, how="minmax")


def test_ways_take_turns_and_the_least_counts() -> None:
    now = 0.0
    turns: list[Quantization] = []
    takes = iter([5.0, 30.0, 3.0, 40.0, 4.0, 20.0])

    def quantized(how: Quantization) -> str:
        nonlocal now
        turns.append(how)
        now += next(takes)
        return f"way {len(turns)}"

    found = in_turns(quantized, 3, lambda: Seconds(wall=now, processor=10 * now))
    assert turns == [PLAINEST, AS_USUAL] * 3
    assert found.plainest == Seconds(wall=3.0, processor=30.0)
    assert found.usual == Seconds(wall=20.0, processor=200.0)
    assert found.how == "way 6"


def test_the_plainest_way_leaves_nothing_open() -> None:
    assert not PLAINEST.is_open
    assert not PLAINEST.fit_weights


@pytest.mark.parametrize(
    ("name", "found", "cycles", "missed"),
    [
        ("zoo:resnet18", compared(1.1), 1.01, []),
        ("zoo:resnet18", compared(1.3), 0.9, ["times as much"]),
        ("zoo:resnet18", compared(1.1), 1.02, ["cycles, times as many"]),
        ("zoo:mobilenet_v1", compared(30.0), 1.5, []),
        ("zoo:mobilenet_v2", compared(29.0), 1.5, []),
        ("zoo:mobilenet_v2", compared(31.0), 1.0, ["by default"]),
    ],
)
def test_a_goal_is_met_or_missed(
    name: str,
    found: QuantizationTimes,
    cycles: float,
    missed: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(quantize, "in_turns", lambda *_: found)
    monkeypatch.setattr(quantize, "cycles_ratio", lambda *_: cycles)
    words = ["bench", "quantize", name, "--samples", "1"]
    assert cli.main([*words, "--json", "--gate"]) == int(bool(missed))
    rows = json.loads(capsys.readouterr().out)["networks"][name]["figures"]
    assert [row["name"] for row in rows if row["met"] is False] == missed
    assert cli.main(words) == 0
    assert ("missed" in capsys.readouterr().out) is bool(missed)


def test_a_network_is_quantized_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "quantize", "zoo:digits", "--turns", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row["value"] for row in document["networks"]["zoo:digits"]["figures"]}
    assert rows["plainest"] > 0
    assert rows["times as long"] == pytest.approx(rows["by default"] / rows["plainest"])
    assert rows["times as much"] > 0
    assert 0.5 < rows["cycles, times as many"] <= 1.01


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["zoo:vgg16"], "no network 'zoo:vgg16'"),
        (["mnist-8"], "mnist-8: no --data"),
        (["--turns", "0"], "--turns: '0' is not a whole number from 1 on"),
    ],
)
def test_bad_options_are_told(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "quantize", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_without_the_network_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "quantize", "mnist-8", "--data", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "mnist-8.onnx" in error
    assert "try: --data FOLDER" in error
