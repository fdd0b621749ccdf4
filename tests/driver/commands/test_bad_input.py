"""Bad input to `tilefarm tune`: one line with the reason, exit code 2, nothing made."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import saved_beside
from onnx import TensorProto, helper
from tilefarm.target import TARGETS

from driver import cli
from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL, DEMO_TEST


@pytest.fixture
def tune(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the command; gives its error after checking its form and that it left nothing."""

    def run(
        *words: str | Path, model: Path = DEMO_MODEL, data: Path = DEMO_CALIBRATION, code: int = 2
    ) -> str:
        out, others = tmp_path / "out", {*multiprocessing.active_children()}
        command = ["tune", str(model), "--calibrate", str(data), "--out", str(out)]
        assert cli.main([*command, *map(str, words)]) == code
        error = capsys.readouterr().err
        lines = error.splitlines()
        assert lines[0].startswith("tilefarm tune: ")
        assert lines[-1].startswith("  try: ")
        assert "Traceback" not in error
        assert not out.exists()
        assert others.issuperset(multiprocessing.active_children())
        return error

    return run


def test_a_file_that_is_not_onnx(tune: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "net.onnx"
    file.write_text("these are not the bytes you are looking for")
    assert "not an ONNX file" in tune(model=file)


def test_an_absent_file(tune: Callable[..., str], tmp_path: Path) -> None:
    assert "nosuch.onnx" in tune(model=tmp_path / "nosuch.onnx")


def test_an_absent_file_is_said_before_absent_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    assert cli.main(["tune", str(tmp_path / "nosuch.onnx"), "--out", out]) == 2
    assert "nosuch.onnx: No such file" in capsys.readouterr().err
    assert cli.main(["tune", str(DEMO_MODEL), "--out", out]) == 2
    assert "digits needs --calibrate DATA.npz" in capsys.readouterr().err
    assert not Path(out).exists()


def test_a_truncated_file(tune: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "net.onnx"
    content = DEMO_MODEL.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    assert "cut off" in tune(model=file)


def test_weights_that_are_not_beside_the_model(tune: Callable[..., str], tmp_path: Path) -> None:
    model = saved_beside(onnx.load(DEMO_MODEL), tmp_path)
    (tmp_path / "w/net.bin").unlink()
    (why, remedy) = tune(model=model).splitlines()
    assert "weight 'conv1.w': external data 'w/net.bin': No such file or directory" in why
    assert "in files of the names that the model has" in remedy


def test_layers_that_the_network_lacks(tune: Callable[..., str]) -> None:
    assert "--keep-float: no layer is called 'conv9'; near: conv" in tune("--keep-float", "conv9")


def test_layers_that_cannot_have_wide_weights(tune: Callable[..., str]) -> None:
    (why, remedy) = tune(
        "--wide-weights", "pool,conv1,convv*", "--keep-float", "conv1"
    ).splitlines()
    assert "--wide-weights: pool: MaxPool2d has no weights" in why
    assert "conv1: stays in float: kept in float by the user" in why
    assert "no layer is called 'convv*'; near: conv" in why
    assert "tilefarm explain" in remedy


def test_layers_that_cannot_have_wide_activations(tune: Callable[..., str]) -> None:
    (why, remedy) = tune("--wide-activations", "pool,conv1,convv*").splitlines()
    assert "--wide-activations: pool: MaxPool2d makes 8 bits only" in why
    assert "no layer is called 'convv*'; near: conv" in why
    assert "tilefarm explain" in remedy


def one_node(
    file: Path, operator: str, *, shape: tuple[int | str, ...] = (1, 4), result: int = 4
) -> Path:
    graph = helper.make_graph(
        [helper.make_node(operator, ["x"], ["y"], name="the_node")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, result])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), str(file))
    return file


def test_an_unsupported_operator_is_named(tune: Callable[..., str], tmp_path: Path) -> None:
    error = tune(model=one_node(tmp_path / "net.onnx", "Det"))
    assert "the_node (Det)" in error


def test_a_dynamic_shape_is_refused_with_a_way_out(
    tune: Callable[..., str], tmp_path: Path
) -> None:
    error = tune(model=one_node(tmp_path / "net.onnx", "Relu", shape=("batch", 4)))
    assert "batch" in error
    assert "try: " in error


def saved(file: Path, **arrays: Any) -> Path:
    np.savez(file, **arrays)
    return file


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.zeros((4, 3, 9, 9), np.float32), "shape [4, 3, 9, 9]"),
        (np.full((4, 1, 8, 8), np.nan, np.float32), "NaN"),
        (np.full((4, 1, 8, 8), np.inf), "float32"),
        (np.zeros((0, 1, 8, 8), np.float32), "empty"),
        (np.array(["a", "b"]), "not real numbers"),
    ],
)
def test_calibration_data_that_do_not_fit(
    values: np.ndarray, reason: str, tune: Callable[..., str], tmp_path: Path
) -> None:
    assert reason in tune(data=saved(tmp_path / "x.npz", x=values))


def test_calibration_data_of_another_format(tune: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "x.npz"
    file.write_text("x = 1")
    assert "not an .npz file" in tune(data=file)


def test_evaluation_data_are_checked_before_anything_starts(
    tune: Callable[..., str], tmp_path: Path
) -> None:
    bad = saved(tmp_path / "x.npz", x=np.full((2, 1, 8, 8), np.nan, np.float32))
    assert "NaN" in tune("--evaluate", bad)


def test_labels_that_are_no_classes_of_the_network(
    tune: Callable[..., str], tmp_path: Path
) -> None:
    data = saved(tmp_path / "x.npz", x=np.zeros((2, 1, 8, 8)), y=np.array([3, 10]))
    error = tune("--evaluate", data)
    assert "reach from 3 to 10, but the network tells 10 classes apart" in error


def test_labels_that_are_no_numbers(tune: Callable[..., str], tmp_path: Path) -> None:
    data = saved(tmp_path / "x.npz", x=np.zeros((2, 1, 8, 8)), y=np.array([0.0, np.nan]))
    assert "labels 'y' contain nan, first in sample 1" in tune("--evaluate", data)


def test_promises_and_kinds_that_there_are_not(tune: Callable[..., str]) -> None:
    assert "--max-loss 101: not a number of points from 0 to 100" in tune("--max-loss", "101")
    assert "--judge faces: no such kind" in tune("--judge", "faces")
    assert "--judge boxes: outputs are" in tune("--judge", "boxes")
    assert "judged on samples that did not calibrate" in tune("--max-loss", "1")


def test_a_promise_that_cannot_be_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "driver.network.quantize.layer_remedies.has_no_kernel", lambda _op: "for this test"
    )
    out, few = tmp_path / "out", tmp_path / "few.npz"
    with np.load(DEMO_TEST) as data:
        np.savez(few, **{name: values[:40] for name, values in data.items()})
    words = ["tune", str(DEMO_MODEL), "--calibrate", str(DEMO_CALIBRATION), "--evaluate", str(few)]
    words += ["--calibration", "percentile:50", "--max-loss", "0.5", "--out", str(out)]
    words += ["--no-ray", "--workers", "1", "--devices", "1"]
    assert cli.main(words) == 2
    *_, why, remedy = capsys.readouterr().err.splitlines()
    assert "--max-loss 0.5 cannot be kept: " in why
    assert "nearest comes" in why
    assert remedy.startswith("  try: --max-loss ")
    assert not (out / "program").exists()


def test_an_unknown_target(tune: Callable[..., str]) -> None:
    assert "unknown target 'nosuch'" in tune("--target", "nosuch")


def target_file(path: Path, change: Callable[[dict[str, dict[str, Any]]], object]) -> Path:
    document = json.loads(TARGETS["sim"].to_json())
    change(document)
    path.write_text(json.dumps(document))
    return path


def test_a_target_with_a_missing_value(tune: Callable[..., str], tmp_path: Path) -> None:
    file = target_file(tmp_path / "t.json", lambda d: d["vta"].pop("log_block"))
    assert "vta.log_block: missing" in tune("--target", file)


def test_a_target_with_a_host_that_there_is_no_code_for(
    tune: Callable[..., str], tmp_path: Path
) -> None:
    file = target_file(tmp_path / "t.json", lambda d: d["host"].update(cpu="x86-64-v22"))
    said = tune("--target", file)
    assert "host.cpu: no processor 'x86-64-v22' of x86_64; near: x86-64-v2" in said


def test_a_target_with_an_impossible_value(tune: Callable[..., str], tmp_path: Path) -> None:
    file = target_file(tmp_path / "t.json", lambda d: d["timing"].update(bus_nbytes=7))
    assert "timing.bus_nbytes" in tune("--target", file)


def test_an_unknown_proposer(tune: Callable[..., str]) -> None:
    error = tune("--proposer", "oracle")
    assert "oracle" in error
    assert "guided" in error


def test_a_folder_of_another_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    document = {
        "schema": 1,
        "model_digest": "0" * 64,
        "target_digest": TARGETS["sim"].digest.hex,
        "seed": 0,
        "proposer": "guided",
    }
    (out / "run.json").write_text(json.dumps(document))
    words = ["tune", str(DEMO_MODEL), "--calibrate", str(DEMO_CALIBRATION), "--out", str(out)]
    assert cli.main(words) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"tilefarm tune: {out}: belongs to another model",
        "  try: choose another folder with --out, or delete this one",
    ]
    assert [p.name for p in out.iterdir()] == ["run.json"]
