"""Extents that a model leaves open: what fixes them, and what the error says to add."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import node, saved
from onnx import TensorProto, helper, numpy_helper
from tilefarm.errors import ModelError, SettingsError

from driver import cli
from driver.network import import_model
from driver.network.frontend.dynamic_dimensions import read_extents
from driver.network.graph.float_run import run_float


def exported(x: list[int | str | None] | None, y: list[int | str]) -> onnx.ModelProto:
    """What exporters make of `x.view(x.size(0), -1)` with open axes, between two layers."""
    rng = np.random.default_rng(4)
    constants = {
        "conv": rng.standard_normal((4, 3, 3, 3)).astype(np.float32),
        "dense": rng.standard_normal((5, 64)).astype(np.float32),
        "zero": np.array(0),
        "rest": np.array([-1]),
        "axes": np.array([0]),
    }
    nodes = [
        node("Conv", ["x", "conv"], "c", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Shape", ["c"], "size"),
        node("Gather", ["size", "zero"], "many", axis=0),
        node("Unsqueeze", ["many", "axes"], "first"),
        node("Concat", ["first", "rest"], "wanted", axis=0),
        node("Reshape", ["c", "wanted"], "flat"),
        node("Gemm", ["flat", "dense"], "y", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "exported",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, y)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


OPEN = exported(["batch", 3, 8, 8], ["batch", 5])
WIDE = exported(["batch", 3, "height", "width"], ["batch", 5])
NAMELESS = exported([None, 3, None, 8], ["batch", 5])


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (OPEN, ["batch=1"]),
        (OPEN, ["x=1x3x8x8"]),
        (WIDE, ["batch=1", "height=8", "width=8"]),
        (WIDE, ["x=1x3x8x8"]),
        (WIDE, ["batch=1", "x=1x3x8x8"]),
        (NAMELESS, ["x=1x3x8x8"]),
        (exported(None, ["batch", 5]), ["x=1x3x8x8"]),
    ],
)
def test_all_ways_to_say_it_mean_one_network(
    made: onnx.ModelProto, words: list[str], tmp_path: Path
) -> None:
    graph = import_model(saved(made, tmp_path), read_extents(words))
    assert graph.inputs[0].shape == (1, 3, 8, 8)
    x = np.random.default_rng(1).standard_normal((3, 3, 8, 8)).astype(np.float32)
    fixed = import_model(saved(exported([1, 3, 8, 8], [1, 5]), tmp_path, "fixed.onnx"))
    assert np.array_equal(run_float(graph, {"x": x})["y"], run_float(fixed, {"x": x})["y"])


def test_a_batch_of_several(tmp_path: Path) -> None:
    graph = import_model(saved(OPEN, tmp_path), {"batch": (4,)})
    assert graph.batch == 4
    assert graph.shapes[graph.outputs[0].tensor] == (4, 5)


@pytest.mark.parametrize(
    ("made", "option"),
    [
        (OPEN, "--shape batch=1"),
        (WIDE, "--shape batch=1 --shape height=N --shape width=N"),
        (NAMELESS, "--shape x=1x3xNx8"),
        (exported(None, ["batch", 5]), "--shape x=1xN..."),
    ],
)
def test_the_error_says_what_to_add(made: onnx.ModelProto, option: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        import_model(saved(made, tmp_path))
    assert option in caught.value.hint.split("; ")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["time=1"], "--shape time: no such input or open dimension; there are batch"),
        (["x=1x8x8"], "--shape x=1x8x8: the input has 4 axes, not 3"),
        (["x=1x4x8x8"], "--shape x=1x4x8x8: axis 1 is 3 in the file"),
        (["dense=5x64"], "--shape dense: no such input"),
        (["x=1x4x8", "time=1"], "; --shape time: no such"),
        (["batch"], "--shape batch: not a name with extents from 1 to"),
        (["batch=0"], "--shape batch=0: not a name with extents from 1 to 2147483647"),
        (["batch=99999999999999999999"], "not a name with extents from 1 to"),
        (["batch=" + "9" * 5000], "not a name with extents from 1 to"),
        (["batch=-1"], "not a name with extents"),
        (["batch=1", "batch=2"], "--shape batch=2: 'batch' was given before"),
    ],
)
def test_what_contradicts_the_file(words: list[str], why: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        import_model(saved(OPEN, tmp_path), read_extents(words))
    assert why in caught.value.what


def test_commands_take_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = saved(OPEN, tmp_path)
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(2).standard_normal((4, 3, 8, 8)))
    words = ["explain", str(file), "--calibrate", str(tmp_path / "x.npz")]
    assert cli.main(words) == 2
    assert "try: --shape batch=1" in capsys.readouterr().err
    assert cli.main([*words, "--shape", "batch=1"]) == 0
    assert "100.00 % of them on the accelerator" in capsys.readouterr().out
