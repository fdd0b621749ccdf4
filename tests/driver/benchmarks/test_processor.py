"""`tilefarm bench processor`: kernels that are right, beside oneDNN where it is there."""

from __future__ import annotations

import argparse
import ctypes.util
import json
import platform
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tilefarm.dtype import DType
from tilefarm.target import Host

from driver.benchmarks.processor import command
from driver.benchmarks.processor.command import LayerSeconds, figures_of
from driver.benchmarks.processor.kernels import aligned, least_in_turns
from driver.benchmarks.processor.layers import LAYERS, as_in_networks, of_type
from driver.benchmarks.processor.peak import peak_call
from driver.cli import main
from driver.network import QLinearLayer, Window, run_workload, sample_inputs

x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="runs code for x86-64")


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    command.add_arguments(parser)
    return parser.parse_args(words)


def seconds(name: str, ours: float, theirs: float | None) -> LayerSeconds:
    return LayerSeconds(
        name=name,
        products=1000,
        default_seconds=ours,
        seconds=ours,
        onednn_seconds=theirs,
        schedule={},
    )


@pytest.mark.parametrize("data", ["u8", "s8"])
def test_layers_are_measured(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    args = parsed("--layers", "D9,C10", "--points", "1", "--turns", "1", "--data", data, "--json")
    assert command.run(args) == 0
    document = json.loads(capsys.readouterr().out)
    depthwise, convolution = document["layers"]
    assert [depthwise["products"], convolution["products"]] == [49 * 9 * 1024, 49 * 256 * 512]
    assert 0 < depthwise["seconds"] <= depthwise["default_seconds"]
    assert document["peak_products_per_second"] > 0
    assert document["dot"]


def test_a_machine_without_onednn_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    assert command.run(parsed("--layers", "D9", "--points", "0", "--turns", "1")) == 0
    found = capsys.readouterr().out
    assert "oneDNN is not installed (Debian has it as libdnnl-dev)" in found
    assert "times oneDNN" not in found


def test_goals_that_are_missed_end_the_gate() -> None:
    measured = [seconds("C1", 1.0, 1.2), seconds("C2", 1.0, 0.8), seconds("D1", 1.0, None)]
    figures = {each.name: each for each in figures_of(measured, peak=1100.0)}
    assert not figures["ResNet-18, times oneDNN, mean"].is_met  # 0.98
    assert not figures["ResNet-18, times oneDNN, least"].is_met
    assert figures["3x3 and 7x7, of the peak"].is_met  # 1000 of 1100
    assert "depthwise, times oneDNN, mean" not in figures
    assert list(figures_of([], peak=None)) == []


def test_an_unknown_layer_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "processor", "--layers", "C1,D77"]) == 2
    assert "no 'D77'" in capsys.readouterr().err


@x86
@pytest.mark.parametrize("host", [Host(), Host(cpu="x86-64-v2")], ids=lambda host: host.cpu)
def test_the_peak_is_above_nothing(host: Host, tmp_path: Path) -> None:
    made = peak_call(host, tmp_path / "peak.so")
    assert made is not None
    call, products = made
    assert products / least_in_turns([call], 2, 0.001)[0] > 1e9
    assert peak_call(Host(triple="riscv64-unknown-linux", cpu="generic-rv64"), tmp_path) is None


def test_arrays_begin_with_a_cache_line() -> None:
    array = np.arange(7, dtype=np.int32)
    copy = aligned(array)
    assert copy.ctypes.data % 64 == 0
    assert (copy == array).all()


@pytest.mark.parametrize("dtype", [DType.UINT8, DType.INT8])
@pytest.mark.parametrize(
    "layer",
    [
        QLinearLayer(
            data=(2, 20, 7, 6),
            outputs=19,
            window=Window(kernel=(3, 2), stride=(2, 1), pad=(1, 1, 0, 1), dilation=(1, 2)),
        ),
        QLinearLayer(
            data=(1, 17, 6, 7),
            outputs=18,
            window=Window(kernel=(2, 3), stride=(2, 1), pad=(1, 1, 0, 1)),
        ).packed_by(2),
        QLinearLayer(
            data=(1, 3, 9, 8),
            outputs=5,
            window=Window(kernel=(5, 3), stride=(2, 2), pad=(2, 1, 2, 1)),
        ),
        QLinearLayer(
            data=(1, 3, 9, 8),
            outputs=5,
            window=Window(kernel=(5, 3), stride=(2, 2), pad=(2, 1, 2, 1)),
        ).packed_by(2),
        QLinearLayer(
            data=(1, 20, 4, 6), outputs=3, window=Window(kernel=(1, 1), stride=(2, 2))
        ).packed_by(2),
        QLinearLayer(
            data=(1, 18, 7, 8),
            outputs=18,
            window=Window(kernel=(3, 5), stride=(1, 2), pad=(1, 2, 1, 2)),
            depthwise=True,
        ),
    ],
    ids=["blocks", "winograd", "rows", "rows of pairs", "pairs", "depthwise"],
)
def test_packed_layers_mean_the_convolution(layer: QLinearLayer, dtype: DType) -> None:
    """Against sums that are written out here, for every output."""
    layer = replace(of_type(layer, dtype), fill=3, zero=-5 if dtype is DType.INT8 else 7)
    work, rng = layer.workload(), np.random.default_rng(1)
    arrays = sample_inputs(work, 1)
    kernel = layer.window.kernel
    weight = rng.integers(
        -128, 128, (layer.outputs, 1 if layer.depthwise else layer.data[1], *kernel), np.int8
    )
    x = rng.integers(layer.clip[0], layer.clip[1] + 1, layer.data).astype(dtype.value)
    arrays |= {"weight": layer.packed(weight), "data": packed_data(layer, x)}
    found = run_workload(work, arrays)["out"]
    assert arrays["weight"].shape == work.inputs[1].shape
    assert arrays["data"].shape == work.inputs[0].shape
    bias, scale = arrays["bias"].reshape(-1), arrays["scale"].reshape(-1)
    top, left, bottom, right = layer.window.pad
    image = np.pad(
        x.astype(np.int64), ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=3
    )
    n, blocks, height, width, _, lanes = found.shape
    for at in np.ndindex(n, layer.outputs, height, width):
        entry, channel, h, w = at
        (down, across), (below, beside) = layer.window.stride, layer.window.dilation
        total = int(bias[channel])
        for kh, kw in np.ndindex(*kernel):
            pixel = image[entry, :, h * down + kh * below, w * across + kw * beside]
            taps = weight[channel, :, kh, kw].astype(np.int64)
            total += int(pixel[channel] * taps[0] if layer.depthwise else pixel @ taps)
        real = np.float32(total) * scale[channel]
        wanted = np.clip(np.rint(real) + layer.zero, *layer.clip)
        assert found[entry, channel // lanes, h, w, 0, channel % lanes] == wanted, at
    assert blocks * lanes >= layer.outputs


def packed_data(layer: QLinearLayer, x: np.ndarray) -> np.ndarray:
    n, channels, height, width = x.shape
    if layer.along_rows:
        return np.ascontiguousarray(x.transpose(0, 2, 3, 1)).reshape(n, 1, height, -1, 1, 1)
    blocks = -(-channels // 16)
    whole = np.zeros((n, blocks * 16, height, width), x.dtype)
    whole[:, :channels] = x
    return np.ascontiguousarray(
        whole.reshape(n, blocks, 16, height, width).transpose(0, 1, 3, 4, 2)
    )[:, :, :, :, None]


def test_the_layers_are_those_of_the_networks() -> None:
    assert sum(each.products for name, each in LAYERS.items() if name[0] == "C") == 773_111_808


@pytest.mark.parametrize("taken", [DType.UINT8, DType.INT8, None])
@pytest.mark.parametrize("dtype", [DType.UINT8, DType.INT8])
def test_data_of_the_other_sign_make_the_same_results(dtype: DType, taken: DType | None) -> None:
    window = Window(kernel=(3, 3), stride=(1, 1), pad=(1, 1, 1, 1))
    layer = of_type(QLinearLayer(data=(1, 16, 4, 4), outputs=16, window=window), dtype)
    moved = as_in_networks(layer, taken)
    assert moved.workload().inputs[0].dtype is (taken or dtype)
    weight = np.random.default_rng(1).integers(-128, 128, (16, 16, 3, 3), np.int8)
    arrays = sample_inputs(layer.workload(), 1) | {"weight": layer.packed(weight)}
    by = moved.fill - layer.fill
    more = by * weight.sum((1, 2, 3), dtype=np.int32).reshape(arrays["bias"].shape)
    others = {
        **arrays,
        "data": (arrays["data"].astype(np.int16) + by).astype(moved.dtype.value),
        "bias": arrays["bias"] - more,
    }
    results = run_workload(layer.workload(), arrays)["out"].astype(np.int16)
    assert (run_workload(moved.workload(), others)["out"] == results + by).all()
