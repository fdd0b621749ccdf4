"""The main job as a user runs it: separate processes, real compiler, tracker and devices."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from kit.networks.onnx_models import model, node, saved
from kit.reports.observed import assert_logs_agree, assert_sound_trace, bars_of
from kit.shared import shared_folder

from driver.network.examples import DEMO_TEST

from .foreground import Command, demo, summary_of

pytestmark = pytest.mark.whole

ZOO = shared_folder()


def test_from_a_network_to_a_checked_program_and_on_again(
    run: type[Command], tmp_path: Path
) -> None:
    code, out, err = run(demo(tmp_path / "o", "--no-ray", "--trials", "10")).end()
    assert (code, err) == (0, "")
    first = summary_of(out)
    assert first["trials_this_session"] == 10
    assert first["accuracy"]["differing"] == 0
    judged = first["accuracy"]["compared"][0]
    assert (judged["name"], judged["against"]) == ("top-1", "labels")
    assert judged["device"] == judged["reference"] > 95
    assert 0 < first["network_cycles"] < 20_000
    assert {p.name for p in (tmp_path / "o").iterdir()} >= {
        "run.json",
        "records.sqlite",
        "program",
        "report.html",
        "trace.json",
        "summary.json",
    }
    html = (tmp_path / "o" / "report.html").read_text()
    assert "<svg" in html
    assert "http://" not in html.replace("http://www.w3.org/", "")
    assert_logs_agree(tmp_path / "o" / "log")
    parts = ("driver", "compile 1", "tracker", "sim0", "runner of sim0")
    trace = (tmp_path / "o" / "trace.json").read_text()
    assert_sound_trace(trace, parts)

    # the second session is one on Ray
    few = ["--workers", "1", "--devices", "1"]
    code, out, err = run(demo(tmp_path / "o", "--trials", "12", *few)).end()
    again = summary_of(out)
    assert (code, err) == (0, "")
    assert again["accuracy"]["differing"] == 0
    search = next(d for d in map(json.loads, out.splitlines()) if d.get("step") == "search")
    assert search["event"] in ("step_began", "step_ended")
    assert again["trials_this_session"] == 2, "what was measured is not measured again"
    assert again["best_cycles"] <= first["best_cycles"]
    both = (tmp_path / "o" / "trace.json").read_text()
    assert_sound_trace(both, parts)
    assert not bars_of(trace) - bars_of(both), "the picture of the first session is still there"
    html = (tmp_path / "o" / "report.html").read_text()
    assert html.count("exhausted</td>") == 2, "a row for each session"
    assert "The program, layer by layer" in html

    answers = tmp_path / "answers.npz"
    words = ["run", str(tmp_path / "o" / "program"), "--input", str(DEMO_TEST)]
    code, out, err = run([*words, "--out", str(answers), "--devices", "1"]).end()
    assert (code, err) == (0, "")
    with np.load(answers) as found, np.load(DEMO_TEST) as data:
        scores = found[found.files[0]]
        labels = data["y"] if "y" in data.files else data["Y"]
        right = int((scores.reshape(len(scores), -1).argmax(axis=1) == labels).sum())
    assert 100 * right / len(labels) == again["accuracy"]["compared"][0]["device"]
    code, out, err = run([*words, "--profile", "--json", "--devices", "1"]).end()
    assert (code, err) == (0, "")
    profile = json.loads(out)["profile"]
    assert profile["clock"] == "cycles"
    assert profile["network"]["cycles"] == again["network_cycles"]
    assert profile["layers_cost"] == again["best_cycles"], "each layer is its kernel alone"
    accelerated = [layer for layer in profile["layers"] if layer["cycles"]]
    assert len(accelerated) == sum(workload["count"] for workload in again["workloads"])
    assert all(layer["ratio"] for layer in accelerated), "every schedule predicts its cycles"


@pytest.mark.slow
def test_the_same_with_wide_weights(run: type[Command], tmp_path: Path) -> None:
    words = ["--no-ray", "--trials", "12", "--wide-weights", "conv*, dense"]
    code, out, err = run(demo(tmp_path / "o", *words)).end()
    assert (code, err) == (0, "")
    found = summary_of(out)
    assert found["accuracy"]["differing"] == 0
    names = [workload["name"] for workload in found["workloads"]]
    assert sum("_2p_" in name for name in names) >= 4, names
    assert "weights of 16 bits" in (tmp_path / "o" / "report.html").read_text()


def depthwise_network(folder: Path) -> tuple[Path, Path]:
    """A network of depthwise and other convolutions, one read by the next, and its data."""
    rng = np.random.default_rng(0)
    shapes = {"a": (16, 3, 3, 3), "d": (16, 1, 3, 3), "p": (24, 16, 1, 1), "m": (384, 10)}
    weights = {
        name: (rng.normal(size=shape) / 4).astype(np.float32) for name, shape in shapes.items()
    }
    nodes = [
        node("Conv", ["x", "a"], "c1", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", ["c1"], "r1"),
        node("Conv", ["r1", "d"], "c2", pads=[1, 1, 1, 1], group=16),
        node("Relu", ["c2"], "r2"),
        node("Conv", ["r2", "p"], "c3"),
        node("Flatten", ["c3"], "f"),
        node("MatMul", ["f", "m"], "y"),
    ]
    data = folder / "data.npz"
    np.savez(data, x=rng.normal(size=(16, 3, 8, 8)).astype(np.float32))
    return saved(model(nodes, weights, x=(1, 3, 8, 8)), folder), data


@pytest.mark.slow  # whole networks of 16 bits have their bits in test_networks.py
def test_weights_and_activations_of_16_bits(run: type[Command], tmp_path: Path) -> None:
    file, data = depthwise_network(tmp_path)
    words = ["tune", str(file), "--calibrate", str(data), "--out", str(tmp_path / "o")]
    wide = ["--wide-weights", "*", "--wide-activations", "*"]
    code, out, err = run([*words, *wide, "--json", "--no-ray", "--trials", "12"]).end()
    assert (code, err) == (0, "")
    found = summary_of(out)
    assert found["accuracy"]["differing"] == 0
    assert len(found["workloads"]) == 4
    assert "data and weights of 16 bits" in (tmp_path / "o" / "report.html").read_text()


def test_no_device_is_exit_code_3(run: type[Command], tmp_path: Path) -> None:
    token = tmp_path / "token"
    tracker = run(["tracker", "--token-file", str(token)])
    assert tracker.process.stdout is not None
    address = tracker.process.stdout.readline().split()[1]
    code, _, err = run(
        demo(
            tmp_path / "o",
            "--no-ray",
            "--tracker",
            address,
            "--token-file",
            str(token),
            "--device-wait",
            "0.5",
        )
    ).end()
    assert code == 3
    lines = err.splitlines()
    assert lines[0].startswith("tilefarm demo: no device with target sim within 0.5 s")
    assert lines[1].startswith("  try: ")
    assert len(lines) == 2


@pytest.mark.slow  # as every row of the fault matrix does
def test_a_farm_that_somebody_serves(run: type[Command], tmp_path: Path) -> None:
    token = tmp_path / "token"
    tracker = run(["tracker", "--token-file", str(token)])
    assert tracker.process.stdout is not None
    farm = ["--tracker", tracker.process.stdout.readline().split()[1], "--token-file", str(token)]
    device = run(["device", "--name", "board7", *farm])
    assert device.process.stdout is not None
    assert device.process.stdout.readline().startswith("ready ")
    code, out, _ = run(["devices", *farm]).end()
    assert code == 0
    assert out.startswith("board7")
    code, out, err = run(
        demo(tmp_path / "o", "--no-ray", "--trials", "6", "--devices", "1", *farm)
    ).end()
    assert (code, err) == (0, "")
    joined = [d for d in map(json.loads, out.splitlines()) if d["event"] == "device_joined"]
    assert {d["device"] for d in joined} == {"board7"}
    for server in (device, tracker):
        server.ctrl_c()
        assert server.end()[0] == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(ZOO is None, reason="the zoo is not here")
def test_resnet8_reaches_its_gate(run: type[Command], tmp_path: Path) -> None:
    assert ZOO is not None
    data = str(ZOO / "zoo" / "data" / "ic01_cifar10_200.npz")
    model = str(ZOO / "zoo" / "models" / "resnet8_f32_float.onnx")
    words = ["tune", model, "--calibrate", data, "--evaluate", data, "--trials", "60", "--json"]
    code, out, _ = run([*words, "--out", str(tmp_path / "o")]).end()
    assert code == 0
    accuracy = summary_of(out)["accuracy"]
    assert accuracy["differing"] == 0
    assert accuracy["compared"][0]["device"] >= 83.5
