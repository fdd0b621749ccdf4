"""What `tilefarm explain` says of a network, and how noise is measured."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from kit.networks.forms_once import forms_once
from kit.networks.onnx_models import model, node, saved
from kit.networks.random_networks import window
from tilefarm.target import TARGETS

from driver import cli
from driver.commands.validation.explaining import (
    ExplainedLayer,
    Explanation,
    LayerScales,
    shift_words,
)
from driver.commands.validation.text_report import lines, principal
from driver.network.examples import DEMO_TEST
from driver.network.forms import NetworkSource, forms_of
from driver.network.frontend.origins import Origin
from driver.network.integer.noise import Noise, noise_between
from driver.network.integer.qir import QAdd, QAvgPool2d, QDense, QRescale


@pytest.fixture(autouse=True)
def _converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driver.network.forms.forms_of", forms_once)


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert cli.main(["explain", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_how_the_network_became_integers_and_why_so(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["zoo:digits", "--images", "1", "--activations", "symmetric"]
    assert cli.main(["explain", *words]) == 0
    first, note, *_ = capsys.readouterr().out.splitlines()
    assert first == "int8 by minmax, symmetric, shifts shared"
    assert note.startswith("  channels share shifts, which is faster: ")
    found = document(capsys, *words, "--no-share-shifts")
    assert found["quantization"] == "minmax, symmetric, shifts of their own"
    assert found["notes"] == []


def test_the_digits(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    found = document(capsys, "zoo:digits", "--images", "4", "--html", str(page))
    layers = {layer["name"]: layer for layer in found["layers"]}
    assert [each["operator"] for each in layers["conv1"]["made_from"]] == ["Mul", "Conv", "Relu"]
    assert layers["probability"]["place"] == "cpu"
    assert layers["probability"]["why"] == "needs float32 division"
    assert layers["flat"]["place"] == "nothing to do"
    assert found["macs"] == sum(layer["macs"] for layer in layers.values()) == 1_189_504
    assert found["share_on_accelerator"] == 1.0
    assert found["crossings"] == ["image.centered.windows", "dense"]
    noisy = [layer for layer in layers.values() if layer["sqnr_db"] is not None]
    assert len(noisy) > 5
    assert all(layer["sqnr_db"] > 20 for layer in noisy)
    shares = layers["conv2"]["noise_shares"]
    assert sum(shares.values()) == pytest.approx(1)
    assert layers["pool"]["noise_shares"]["before"] == pytest.approx(1)
    assert [
        (each["place"], each["first"], each["last"], each["macs"]) for each in found["subgraphs"]
    ] == [
        ("cpu", "image.centered", "image.centered", 0),
        ("accelerator", "conv1", "dense", 1_189_504),
        ("cpu", "probability", "probability", 0),
    ]
    assert found["subgraphs"][2]["why"] == [layers["probability"]["why"]]
    text = page.read_text()
    assert "needs float32 division" in text
    assert "Subgraphs, in order" in text
    assert "<script" not in text
    (picture,) = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    ElementTree.fromstring(picture)
    assert "conv2: " in picture


def test_wide_weights_are_told_and_add_no_noise(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("zoo:digits", "--images", "4", "--no-correct-bias")
    usual, wide = (document(capsys, *words, *more) for more in ((), ("--wide-weights", "conv*")))
    assert "conv* with weights of 16 bits" in wide["quantization"]
    for before, after in zip(usual["layers"], wide["layers"], strict=True):
        is_wide = before["name"].startswith("conv")
        assert ("weights of 16 bits" in after["why"]) == is_wide
        if is_wide:
            assert after["noise_shares"]["weights"] < 0.001 < before["noise_shares"]["weights"]


def test_wide_activations_are_told_and_rounding_adds_no_noise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("zoo:digits", "--images", "4")
    more = ("--wide-activations", "conv1", "--wide-weights", "conv2")
    usual, wide = (document(capsys, *words, *some) for some in ((), more))
    assert "conv1 with results of 16 bits" in wide["quantization"]
    before, after = ({layer["name"]: layer for layer in found["layers"]} for found in (usual, wide))
    shares = [found["conv1"]["noise_shares"]["rounding"] for found in (before, after)]
    assert shares[1] < shares[0] / 50
    assert after["conv2"]["why"].startswith("data and weights of 16 bits")


def test_noise_is_measured_on_other_data_if_there_are_some(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with np.load(DEMO_TEST) as data:
        np.savez(tmp_path / "x.npz", x=data["x"][:3])
    assert document(capsys, "zoo:digits", "--data", str(tmp_path / "x.npz"))["samples"] == 3


@pytest.mark.parametrize(
    "more", [[], ["--wide-weights", "*"], ["--wide-weights", "*", "--wide-activations", "*"]]
)
def test_the_table_fits(capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    assert cli.main(["explain", "zoo:digits", "--images", "1", *more]) == 0
    out = capsys.readouterr().out.splitlines()
    assert max(map(len, out)) <= 100
    assert ["image.centered", "cpu", "a"] in [line.split()[:3] for line in out]


def test_scales_that_became_static_are_counted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    nodes = [
        node("DynamicQuantizeLinear", ["x"], "q", "q.scale", "q.zero"),
        node("MatMulInteger", ["q", "w", "q.zero"], "s"),
        node("Cast", ["s"], "f", to=1),
        node("Mul", ["f", "q.scale"], "y"),
    ]
    weights = {"w": np.arange(-8, 8, dtype=np.int8).reshape(8, 2)}
    file = saved(model(nodes, weights, x=(1, 8)), tmp_path)
    np.savez(tmp_path / "x.npz", x=np.eye(8, dtype=np.float32))
    assert cli.main(["explain", str(file), "--calibrate", str(tmp_path / "x.npz")]) == 0
    out = capsys.readouterr().out
    assert "layers whose scales data decide in the file, and calibration here: 1" in out
    assert "MatMulInteger" in out


def test_the_integer_of_a_real_0_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    nodes = [
        node("MatMul", ["x", "w"], "s"),
        node("Relu", ["s"], "r"),
        node("MatMul", ["r", "w"], "y"),
    ]
    file = saved(model(nodes, {"w": np.eye(8, dtype=np.float32)}, x=(1, 8)), tmp_path)
    np.savez(tmp_path / "x.npz", x=np.concatenate([np.eye(8), -np.eye(8)]).astype(np.float32))
    words = [str(file), "--calibrate", str(tmp_path / "x.npz"), "--activations", "asymmetric"]
    layers = document(capsys, *words)["layers"]
    hidden = [each["name"] for each in layers if each["zero"] == -127]
    assert len(hidden) == 1
    assert cli.main(["explain", *words, "--html", str(tmp_path / "page.html")]) == 0
    out = capsys.readouterr().out
    (said,) = [line for line in out.splitlines() if line.startswith("layers whose real 0 is ano")]
    assert f"{hidden[0]} -127" in said
    assert "real 0 is -127" in (tmp_path / "page.html").read_text()


def test_long_names_and_infinite_noise_fit() -> None:
    layer = ExplainedLayer(
        name="n" * 90,
        operator="QConv2d",
        place="accelerator",
        why="w",
        made_from=(Origin("a", "BatchNormalization"), Origin("b", "Relu")),
        kernels=("conv2d",),
        scales=LayerScales(scale_in=(None,), scale=1e-9, zero=-127, shift=">>10..22 by channel"),
        macs=99_999_999_999,
        noise=Noise(signal=1.0),
    )
    told = Explanation(
        name="net",
        target="sim",
        has_accelerator=True,
        samples=1,
        layers=(layer,),
        crossings=("t" * 60,) * 3,
    )
    text = list(lines(told))
    assert max(map(len, text)) <= 100
    assert "exact" in text[1]
    assert told.share_on_accelerator == 1.0


def test_many_reasons_and_long_names_fit() -> None:
    layers = tuple(
        ExplainedLayer(
            name="n" * 150,
            operator="QConv2d",
            place=("accelerator", "cpu")[number % 2],
            why=f"reason {number}",
            made_from=(),
            kernels=(),
            scales=LayerScales(),
            macs=7,
        )
        for number in range(40)
    )
    told = Explanation(
        name="net", target="sim", has_accelerator=True, samples=1, layers=layers, crossings=()
    )
    text = list(lines(told))
    assert max(map(len, text)) <= 100
    assert " an  reason 39" in text
    assert len(told.subgraphs) == 40


def test_a_layer_is_named_for_what_computes() -> None:
    pair = (Origin("q", "QuantizeLinear"), Origin("d", "DequantizeLinear"))
    layer = (Origin("c", "Conv"), Origin("r", "Relu"))
    assert principal((*pair, *layer)) == layer
    assert principal(pair) == pair


def test_a_network_without_work_is_whole() -> None:
    assert Explanation(
        name="", target="", has_accelerator=True, samples=0, layers=(), crossings=()
    ).share_on_accelerator == 1.0  # fmt: skip


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("zoo:vgg",), "zoo:vgg: no such network"),
        (("zoo:digits", "--images", "0"), "argument --images: '0' is not a whole number from 1 on"),
        (("absent.onnx",), "cannot read absent.onnx"),
        (("zoo:digits", "--html", "/absent/x.html"), "/absent/x.html: cannot be written"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str) -> None:
    assert cli.main(["explain", *words]) == 2
    assert why in capsys.readouterr().err


def test_shifts_in_words() -> None:
    def dense(*shift: int) -> QDense:
        lanes = np.array(shift, np.int32)
        return QDense(weight=np.ones((len(shift), 1), np.int8), bias=lanes, shift=lanes)

    assert shift_words(dense(7, 7, 7), 2) == ">>7"
    assert shift_words(dense(7, 7, 8, 8), 2) == ">>7..8 by block"
    assert shift_words(dense(7, 8, 8, 8), 2) == ">>7..8 by channel"
    factors = np.array([90, 200, 90], np.int32)
    assert shift_words(replace(dense(7, 7, 7), factor=factors), 2) == "x90..200>>7"
    assert shift_words(replace(dense(7), factor=factors[:1]), 2) == "x90>>7"
    assert shift_words(QAdd(mul_a=3, mul_b=-4, shift=2), 2) == "(3a-4b)>>2"
    assert shift_words(QRescale(mul=9, shift=4), 2) == "9x>>4"
    pool = QAvgPool2d(window=window(2, 2, 0), mul=np.ones((1, 1), np.int32), shift=5)
    assert shift_words(pool, 2) == "sum>>5"


def test_noise_is_a_ratio_of_energies() -> None:
    wanted = np.array([3.0, 4.0], np.float32)
    each = noise_between(wanted, np.array([3.0, 4.5], np.float32))
    assert each == Noise(signal=25.0, noise=0.25, largest=0.5)
    assert each.ratio_db == pytest.approx(20.0)
    assert (each + Noise(signal=25.0)).ratio_db == pytest.approx(10 * math.log10(200))
    assert noise_between(wanted, wanted).ratio_db == math.inf
    assert Noise(noise=1.0).ratio_db == -math.inf


def test_the_file_says_where_a_layer_is_from() -> None:
    forms = forms_of(NetworkSource(model="zoo:squeezenet"), TARGETS["sim"])
    assert set(forms.made_from) == {node.output for node in forms.graph.nodes}
    counted = sum(len(each) for each in forms.made_from.values())
    assert counted >= len(forms.graph.nodes)


def test_a_processor_has_no_shifts(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "zoo:digits", "--target", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (head,) = (line.split() for line in lines if line.startswith("layer "))
    assert head == ["layer", "place", "MACs", "share", "SQNR", "scale", "made", "from"]
