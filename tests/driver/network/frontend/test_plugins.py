"""Operators of users: what they become, and what is refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, saved
from onnx import helper
from tilefarm.errors import ModelError, SettingsError

from driver.cli import main
from driver.network import (
    AS_USUAL,
    Graph,
    forget_plugins,
    import_model,
    load_plugin,
    partition_network,
    quantize_for,
    run_float,
    run_integer,
)
from driver.targets import usable_target

HEAD = """
import numpy as np
from compile_worker.te.script_words import Cells, buffer, exp, float32, tanh
from driver.network import custom_operator

HALF = 0.5
"""
SMOOTH = (
    HEAD
    + """
@custom_operator("com.example", "Smooth", shape=lambda x, k, gain: (*x[:2], x[2] - k[0] + 1))
def smooth(x: Cells, k: Cells, out: Cells, *, gain: float) -> None:
    for n in range(out.shape[0]):
        for c in range(out.shape[1]):
            for i in range(out.shape[2]):
                out[n, c, i] = 0
                for t in range(k.shape[0]):
                    out[n, c, i] += gain * HALF * x[n, c, i + t] * k[t]

@smooth.reference
def _(x, k, *, gain):
    windows = np.lib.stride_tricks.sliding_window_view(x, len(k), axis=2)
    return gain * 0.5 * (windows * k).sum(-1)
"""
)
ROWS = (
    HEAD
    + """
@custom_operator("com.example", "Rows")
def rows(x: Cells, out: Cells) -> None:
    top = buffer(float32, x.shape[0], x.shape[1])
    whole = buffer(float32, x.shape[0], x.shape[1])
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            top[n, c] = float32(-1e30)
            for i in range(x.shape[2]):
                top[n, c] = max(top[n, c], x[n, c, i])
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            whole[n, c] = 0
            for i in range(x.shape[2]):
                whole[n, c] += exp(x[n, c, i] - top[n, c])
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            for i in range(x.shape[2]):
                out[n, c, i] = exp(x[n, c, i] - top[n, c]) / whole[n, c]

@rows.reference
def _(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)
"""
)


@pytest.fixture(autouse=True)
def _known_to_nobody_else() -> Iterator[None]:
    yield
    forget_plugins()


def plugin(folder: Path, text: str) -> str:
    path = folder / "mine.py"
    path.write_text(text)
    return str(path)


def smoothing(**attrs: Any) -> onnx.NodeProto:
    return helper.make_node("Smooth", ["x", "k"], ["y"], name="s", domain="com.example", **attrs)


def imported(folder: Path, text: str, node: onnx.NodeProto, x: tuple[int, ...]) -> Graph:
    load_plugin(plugin(folder, text))
    weights = {"k": np.array([0.25, 0.5, 0.25], np.float32)}
    made = model([node], weights if "k" in node.input else {}, x=x)
    return import_model(saved(made, folder))


def test_its_script_is_what_is_computed(tmp_path: Path) -> None:
    graph = imported(tmp_path, SMOOTH, smoothing(gain=3.0), (2, 3, 7))
    x = np.random.default_rng(0).standard_normal((4, 3, 7), np.float32)
    (out,) = run_float(graph, {"x": x}).values()
    wanted = 1.5 * (0.25 * x[..., :-2] + 0.5 * x[..., 1:-1] + 0.25 * x[..., 2:])
    assert out.shape == (4, 3, 5)
    assert np.allclose(out, wanted, atol=1e-5)


@pytest.mark.parametrize("target", ["sim", "cpu:x86-64-v3"])
def test_the_integer_network_runs_it_as_a_kernel(tmp_path: Path, target: str) -> None:
    node = helper.make_node("Rows", ["x"], ["y"], name="r", domain="com.example")
    graph = imported(tmp_path, ROWS, node, (1, 2, 5))
    x = np.random.default_rng(0).standard_normal((3, 2, 5), np.float32)
    quantized = quantize_for(usable_target(target), graph, {"x": x}, AS_USUAL)
    network = partition_network(quantized, usable_target(target))
    (step,) = [step for step in network.steps if step.workload.operator == "script"]
    assert step.place == "cpu"
    (floats,) = run_float(graph, {"x": x}).values()
    (integers,) = run_integer(quantized, {"x": x}).values()
    assert np.allclose(floats, integers, atol=0.02)


BODY = "    for i in range(x.shape[0]):\n        out[i] = x[i]\n"
FLAT = HEAD + '@custom_operator("com.example", "Same", flat=True)\ndef same(x, out):\n' + BODY
SAME = helper.make_node("Same", ["x"], ["y"], name="s", domain="com.example")


@pytest.mark.parametrize(
    ("text", "node", "why"),
    [
        (FLAT, SAME, "has no reference"),
        (FLAT + "@same.reference\ndef _(x):\n    return x + 1\n", SAME, "script makes"),
        (FLAT + "@same.reference\ndef _(x):\n    return x * np.nan\n", SAME, "its numpy nan"),
        (FLAT + "@same.reference\ndef _(x):\n    return x[0]\n", SAME, "its shape says"),
        (FLAT + "@same.reference\ndef _(x):\n    raise OSError('no')\n", SAME, "OSError: no"),
        (SMOOTH, smoothing(), "attribute 'gain' is missing"),
        (SMOOTH, smoothing(gain=1.0, bend=2.0), "has no attribute bend"),
        (SMOOTH.replace("(*x[:2],", "(9, *x[:2],"), smoothing(gain=1.0), "the plugin's"),
        (SMOOTH.replace("x[2] - k[0] + 1", "x[9]"), smoothing(gain=1.0), "shape fails: IndexError"),
        (SMOOTH.replace("i + t", "i + t + 3"), smoothing(gain=1.0), "the plugin's script"),
        (
            SMOOTH,
            helper.make_node("Smooth", ["x"], ["y"], name="s", domain="com.example"),
            "it has 1 inputs",
        ),
    ],
)
def test_a_plugin_that_does_not_fit_is_one_reason(
    tmp_path: Path, text: str, node: onnx.NodeProto, why: str
) -> None:
    with pytest.raises(ModelError, match=why.replace("(", r"\(")) as raised:
        imported(tmp_path, text, node, (1, 3, 7))
    assert ": s (" in raised.value.what
    assert raised.value.hint


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = 1", "declares no operator"),
        ("import nothing_like_this", "cannot be loaded: ModuleNotFoundError"),
        ("def (", "cannot be loaded: SyntaxError"),
        (HEAD + '@custom_operator("", "Relu")\ndef f(x, out):\n' + BODY, "defined elsewhere"),
        (HEAD + '@custom_operator("a.b", "C")\ndef f(*x):\n    pass\n', "named parameters"),
    ],
)
def test_a_file_that_is_no_plugin_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why) as raised:
        load_plugin(plugin(tmp_path, text))
    assert raised.value.hint


def test_two_plugins_do_not_claim_one_operator(tmp_path: Path) -> None:
    load_plugin(plugin(tmp_path, FLAT))
    load_plugin(plugin(tmp_path, FLAT + "# said again\n"))
    with pytest.raises(SettingsError, match="which another plugin has"):
        load_plugin(plugin(tmp_path, FLAT.replace("x[i]\n", "x[i] + 1\n")))


def test_what_no_package_brings_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "net.onnx", "--plugin", "absent"]) == 2
    assert "no package brings absent" in capsys.readouterr().err
    assert main(["explain", "net.onnx", "--plugin", "absent.py"]) == 2
    assert "there is no file absent.py" in capsys.readouterr().err
