"""`tilefarm bench zoo` on a folder made here: what is read, scored, refused and skipped."""

from __future__ import annotations

import gzip
import io
import json
import math
import struct
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, node, saved
from numpy.typing import NDArray
from onnx import helper
from PIL import Image
from tilefarm.errors import DataError, SettingsError

from driver import cli
from driver.benchmarks.zoo.attempt import attempt
from driver.benchmarks.zoo.goals import goals
from driver.benchmarks.zoo.images import read_image
from driver.benchmarks.zoo.recipes import ZooRecipe
from driver.benchmarks.zoo.records import Attempt, RefusedNetwork, Tried
from driver.benchmarks.zoo.samples import Archive, ClipWindows, Idx, RandomInputs, Sheets, read
from driver.benchmarks.zoo.scores import accuracy, auc, score_text
from driver.benchmarks.zoo.tables import document, tables
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Graph
from driver.network.graph.parts import Arrays
from driver.network.quantize.options import AS_USUAL

IMAGES = ZooRecipe(task="images", data=Archive("images.npz"), calibrate=15, gate=0.9)


def png(image: NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG")
    return file.getvalue()


def image(height: int, width: int) -> NDArray[np.uint8]:
    return np.random.default_rng(2).integers(0, 256, (height, width, 3)).astype(np.uint8)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda content: b"GIF89a" + content, "cannot identify"),
        (lambda content: content[:60], "truncated"),
        (lambda content: content[:50] + b"\0" + content[51:], "broken"),
        (lambda content: png(image(4, 4)[..., 0]), "its pixels are L, not RGB"),
        (lambda content: content[:16] + b"\0\0\xff\xff" * 2 + content[24:], "cannot read"),
    ],
    ids=["kind", "cut", "changed", "grey", "huge"],
)
def test_damaged_images(damage: Callable[[bytes], bytes], why: str, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(damage(png(image(4, 4))))
    with pytest.raises(DataError, match=why):
        read_image(tmp_path / "a.png")


def test_an_image_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        read_image(tmp_path / "a.png")


def test_who_has_not_pillow_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(SettingsError, match="Pillow") as error:
        read_image(tmp_path / "a.png")
    assert error.value.hint == "pip install pillow"


def test_sheets_are_cut_row_by_row(tmp_path: Path) -> None:
    folder = tmp_path / "sheets"
    folder.mkdir()
    whole = image(8, 12)
    (folder / "sheet_00.png").write_bytes(png(whole))
    (folder / "labels.txt").write_text("0\n1\n1\n0\n1\n")
    samples = read(Sheets("sheets", 4), tmp_path)
    assert samples.x.shape == (5, 4, 4, 3)
    assert np.array_equal(samples.x[1], whole[:4, 4:8])
    assert np.array_equal(samples.x[3], whole[4:, :4])
    assert samples.labels.tolist() == [0, 1, 1, 0, 1]
    scaled = read(Sheets("sheets", 4, into=(8, 6)), tmp_path)
    assert scaled.x.shape == (5, 8, 6, 3)
    assert np.array_equal(scaled.x[1, ::2, [0, 2, 3, 5]], samples.x[1].transpose(1, 0, 2))


def test_grey_images_have_one_channel_of_whole_numbers(tmp_path: Path) -> None:
    folder = tmp_path / "sheets"
    folder.mkdir()
    whole = image(4, 4)
    (folder / "sheet_00.png").write_bytes(png(whole))
    (folder / "labels.txt").write_text("1\n")
    (grey,) = read(Sheets("sheets", 4, grey=True), tmp_path).x
    assert grey.shape == (4, 4, 1)
    red, green, blue = whole[1, 2].tolist()
    assert grey[1, 2, 0] == round(0.299 * red + 0.587 * green + 0.114 * blue)


def test_windows_of_clips(tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", X=np.arange(40.0).reshape(2, 5, 4), Y=np.array([0, 1]))
    samples = read(ClipWindows(file="c.npz", values=8, stride=4, per_clip=3), tmp_path)
    assert samples.x[:, 0].tolist() == [0, 4, 8, 20, 24, 28]
    assert samples.per_label == 3
    assert samples.after(1).x[:, 0].tolist() == [20, 24, 28]
    assert len(samples.first(1).x) == 3


def idx(values: NDArray[np.uint8]) -> bytes:
    extents = b"".join(struct.pack(">i", extent) for extent in values.shape)
    return gzip.compress(bytes([0, 0, 8, values.ndim]) + extents + values.tobytes())


def test_files_in_mnists_format(tmp_path: Path) -> None:
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "x.gz").write_bytes(idx(x))
    (tmp_path / "y.gz").write_bytes(idx(np.array([7, 9], np.uint8)))
    samples = read(Idx("x.gz", "y.gz"), tmp_path)
    assert np.array_equal(samples.x, x)
    assert samples.labels.tolist() == [7, 9]
    (tmp_path / "y.gz").write_bytes(idx(np.zeros(3, np.uint8)))
    with pytest.raises(DataError, match="2 samples, but 3 labels"):
        read(Idx("x.gz", "y.gz"), tmp_path)
    for damaged in (b"\0\0\x0d\1\0\0\0\1abcd", b"\0\0\x08\3\0\0", b"\0", idx(x)[:20]):
        (tmp_path / "x.gz").write_bytes(gzip.compress(damaged))
        with pytest.raises(DataError, match="not a file of bytes in MNIST's format"):
            read(Idx("x.gz", "y.gz"), tmp_path)
    (tmp_path / "x.gz").write_bytes(idx(x)[:20])
    with pytest.raises(DataError, match="cannot read"):
        read(Idx("x.gz", "y.gz"), tmp_path)


@pytest.mark.parametrize(
    "source",
    [Archive("no.npz"), Idx("no.gz", "no.gz"), Sheets("no", 96), Archive("empty.npz")],
)
def test_data_that_are_not_there(source: Archive | Idx | Sheets, tmp_path: Path) -> None:
    np.savez(tmp_path / "empty.npz", Z=np.zeros(1))
    with pytest.raises(
        DataError, match=r"cannot read|no sheet_NN\.png|needs arrays X and Y; has Z"
    ):
        read(source, tmp_path)


@pytest.mark.parametrize(
    "arrays",
    [
        {"X": np.array(["a"]), "Y": np.array([1])},
        {"X": np.zeros((0, 3)), "Y": np.array([], int)},
        {"X": np.zeros((2, 3)), "Y": np.array([0.5, 1])},
        {"X": np.array(3), "Y": np.array([1])},
    ],
)
def test_arrays_that_are_no_samples(arrays: dict[str, NDArray[Any]], tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", allow_pickle=True, **arrays)
    for source in (Archive("a.npz"), ClipWindows(file="a.npz", values=2, stride=1, per_clip=1)):
        with pytest.raises(DataError, match=r"not numbers \[samples, \.\.\.\] and integers"):
            read(source, tmp_path)


def test_scores() -> None:
    x = np.zeros((4, 2))
    votes = np.array([[1, 0], [0, 1], [2, 3], [5, 4]])
    assert accuracy(x, votes, np.array([0, 1, 0, 0])) == 0.75
    errors = np.array([[3.0, 0], [0, 1], [2, 0], [1, 0]])
    assert auc(x, errors, np.array([1, 0, 1, 0])) == 1.0
    assert auc(x, errors, np.array([1, 0, 0, 1])) == 0.625
    assert score_text("accuracy", 0.8549) == "85.5 %"
    assert score_text("auc", auc(x, errors, np.zeros(4, np.int64))) == "-"


def small_model(folder: Path) -> Path:
    """One layer: images of 3x4x4 to 10 scores."""
    weights = np.random.default_rng(3).standard_normal((10, 3, 4, 4)).astype(np.float32)
    made = model([node("Conv", ["x", "w"], "y")], {"w": weights}, x=(1, 3, 4, 4))
    return saved(made, folder, "small.onnx")


def task(folder: Path, recipe: ZooRecipe = IMAGES, model: str = "") -> Attempt:
    """Sixty images that all say 0."""
    x = np.random.default_rng(4).integers(0, 256, (60, 4, 4, 3)).astype(np.uint8)
    np.savez(folder / "images.npz", X=x, Y=np.zeros(60, np.uint8))
    return Attempt(
        name="small",
        model=model or str(small_model(folder)),
        recipe=recipe,
        data=folder,
        samples=None,
        how=AS_USUAL,
        target="sim",
        with_peer=False,
        says=False,
    )


def test_a_network_is_scored_on_what_did_not_calibrate_it(tmp_path: Path) -> None:
    row = attempt(task(tmp_path))
    assert isinstance(row, Tried)
    assert (row.samples, row.labels, row.differing, row.gate) == (45, 45, 0, 0.9)
    assert row.device == row.integers
    assert row.use.share == 1.0
    assert row.use.predicted_cycles is not None
    assert row.use.plain_cycles is not None
    assert row.use.predicted_cycles <= row.use.plain_cycles
    assert row.compared[0].title == "top-1 of labels"
    assert row.compared[0].device == pytest.approx(100 * (row.device or 0))
    assert row.findings == (
        f"{100 * (row.device or 0):.1f} % on the device is below the gate of 90.0 %",
    )
    text = "\n".join(tables([row], [RefusedNetwork("net", "why")], {"b": "no b.onnx"}))
    for words in ("FAILS    small", "REFUSED  net: why", "skipped  b", "0 of 2 networks pass"):
        assert words in text
    assert not document([row], [], {})["passes"]
    good = replace(row, gate=None)
    assert document([good], [], {})["passes"]
    assert replace(good, differing=2).findings == (
        "2 of 45 samples differ from the integer reference",
    )
    assert replace(good, use=replace(good.use, share=0.5)).findings == (
        "only 50.0 % of the multiply-accumulates are on the accelerator",
    )


def test_a_network_on_a_processor_is_told_in_seconds(tmp_path: Path) -> None:
    row = attempt(replace(task(tmp_path), target="cpu"))
    assert isinstance(row, Tried)
    assert (row.samples, row.differing, row.was_quantized) == (45, 0, False)
    assert (row.use.share, row.use.plain_cycles, row.use.macs) == (None, None, 480)
    assert row.use.program_seconds is not None
    assert row.use.program_seconds > 0
    assert replace(row, gate=None).findings == (), "no share of the work is asked for"
    text = "\n".join(tables([row], [], {}))
    assert "GMAC/s" in text
    assert "cycles" not in text
    (told,) = document([row], [], {})["networks"]
    assert told["seconds"] == row.seconds
    assert told["program_seconds"] == row.use.program_seconds


def test_a_quantized_network_keeps_its_own_arithmetic_on_a_processor(tmp_path: Path) -> None:
    scale: dict[str, NDArray[Any]] = {
        "s": np.array(0.3, np.float32),
        "z": np.array(3, np.uint8),
        "w": np.arange(480, dtype=np.int8).reshape(10, 3, 4, 4),
        "zw": np.array(0, np.int8),
    }
    steps = [
        node("QuantizeLinear", ["x", "s", "z"], "q"),
        node("DequantizeLinear", ["q", "s", "z"], "d"),
        node("DequantizeLinear", ["w", "s", "zw"], "dw"),
        node("Conv", ["d", "dw"], "c"),
        node("QuantizeLinear", ["c", "s", "z"], "qc"),
        node("DequantizeLinear", ["qc", "s", "z"], "y"),
    ]
    path = saved(model(steps, scale, x=(1, 3, 4, 4)), tmp_path, "ready.onnx")
    row = attempt(replace(task(tmp_path), model=str(path), target="cpu"))
    assert isinstance(row, Tried)
    assert (row.differing, row.was_quantized) == (0, True)


def test_labels_of_another_task_only_say_how_many_samples_there_are(tmp_path: Path) -> None:
    row = attempt(task(tmp_path, replace(IMAGES, labelled=False, most=3)))
    assert isinstance(row, Tried)
    assert (row.samples, row.labels, row.device, row.gate) == (3, 0, None, None)
    assert (row.kind, row.against_float.title) == ("classes", "top-1 of float")
    assert all(each.against == "float" for each in row.compared)
    text = "\n".join(tables([row], [], {}))
    assert f"{row.against_float.device:.1f} % top-1" in text
    exact = replace(row, compared=(replace(row.compared[-1], device=math.inf),))
    assert document([exact], [], {})["networks"][0]["compared"][0]["device"] is None


def measured(folder: Path, **found: Any) -> Tried:
    row = attempt(task(folder))
    assert isinstance(row, Tried)
    return replace(row, **found)


def test_goals_are_beside_onnx_runtime(tmp_path: Path) -> None:
    assert list(goals(measured(tmp_path))) == [], "it did not run"
    row = measured(tmp_path, peer=0.9, device=0.895, peer_int8_db=20.0, sqnr_db=20.5)
    below, above = goals(row)
    assert below.value == pytest.approx(0.5)
    assert (below.goal, below.is_met) == (1.0, True)
    assert above.value == pytest.approx(0.5)
    assert (above.goal, above.is_met) == (0.0, True)
    assert not next(goals(replace(row, device=0.88))).is_met
    assert not list(goals(replace(row, sqnr_db=19.0)))[1].is_met
    (before,) = goals(replace(row, was_quantized=True, device=0.894, peer_int8_db=None))
    assert (before.goal, before.is_met) == (0.5, False)
    (before,) = goals(replace(row, was_quantized=True, device=0.895, peer_int8_db=None))
    assert before.is_met
    (before,) = goals(replace(row, was_quantized=True, peer=0.902, device=0.897, peer_int8_db=None))
    assert before.is_met
    assert list(goals(replace(row, is_seeded=True))) == []


def test_a_network_that_scores_low_may_lose_more_if_it_answers_as_in_float(tmp_path: Path) -> None:
    row = measured(tmp_path, peer=0.4, device=0.2)
    like = [replace(each, device=98.5) for each in row.compared]
    (figure,) = goals(replace(row, compared=tuple(like)))
    assert (figure.unit, figure.value, figure.goal, figure.is_met) == ("%", 98.5, 98.0, True)
    (figure,) = goals(replace(row, compared=tuple(like), device=0.395))
    assert (figure.unit, figure.is_met) == ("points", True)


def test_onnx_runtimes_own_int8_stands_beside(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    row = attempt(replace(task(tmp_path), with_peer=True))
    assert isinstance(row, Tried)
    assert row.peer == row.floats
    assert row.peer_int8_db is not None
    assert 20 < row.peer_int8_db < 60
    assert row.peer_int8 is not None
    assert not row.was_quantized
    assert [figure.unit for figure in goals(row)][-1] == "dB"


def test_a_network_that_onnx_runtime_does_not_quantize_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def runs(path: Path, graph: Graph, inputs: Arrays) -> Arrays:
        return run_float(graph, inputs)

    monkeypatch.setattr("driver.benchmarks.zoo.attempt.peer_outputs", runs)
    small = replace(task(tmp_path), with_peer=True, says=True)
    row = attempt(replace(small, recipe=replace(IMAGES, data=RandomInputs())))
    assert isinstance(row, Tried)
    assert row.peer_int8_db is None
    why = "there are no data to calibrate it"
    assert f"small: ONNX Runtime does not quantize it: {why}" in capsys.readouterr().err
    ends: dict[str, NDArray[Any]] = {"s": np.array(0.05, np.float32), "z": np.array(0, np.int8)}
    steps = [
        node("QuantizeLinear", ["x", "s", "z"], "q"),
        node("DequantizeLinear", ["q", "s", "z"], "y"),
    ]
    ready = saved(model(steps, ends), tmp_path, "ready.onnx")
    attempt(replace(small, model=str(ready)))
    why = "the model is quantized already"
    assert f"small: ONNX Runtime does not quantize it: {why}" in capsys.readouterr().err


def test_onnx_runtime_does_not_warn_of_every_weight_that_is_an_input_too(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As they had to be in models of earlier years."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    small = task(tmp_path)
    old = onnx.load(small.model)
    old.graph.input.append(
        helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, (10, 3, 4, 4))
    )
    row = attempt(replace(small, model=str(saved(old, tmp_path)), with_peer=True))
    assert isinstance(row, Tried)
    assert row.peer_int8_db is not None
    assert "Initializer w" not in capfd.readouterr().err


def test_what_cannot_be_tried_is_a_refusal(tmp_path: Path) -> None:
    end = attempt(task(tmp_path, model="absent.onnx"))
    assert isinstance(end, RefusedNetwork)
    assert "cannot read absent.onnx" in end.why
    end = attempt(task(tmp_path, replace(IMAGES, data=Archive("none.npz"))))
    assert isinstance(end, RefusedNetwork)
    assert "none.npz" in end.why


def test_data_that_all_calibrate_leave_none_to_score(tmp_path: Path) -> None:
    end = attempt(task(tmp_path, replace(IMAGES, calibrate=60)))
    assert isinstance(end, RefusedNetwork)
    assert "60 labels, but the first 60 calibrate" in end.why


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that the table does not know gets seeded inputs; others of the table are skipped."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.onnx").write_bytes(small_model(tmp_path).read_bytes())
    command = ["bench", "zoo", "--data", str(tmp_path), "mine", "mnist-8", "--json"]
    assert cli.main(command) == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = found["networks"]
    assert (row["name"], row["differing"], row["samples"]) == ("mine", 0, 2)
    assert "mnist-8.onnx" in found["skipped"]["mnist-8"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--data", "/nowhere"), "no folder /nowhere/models"),
        (("nosuch",), "no network 'nosuch' without --data FOLDER"),
        (("--samples", "0"), "argument --samples: '0' is not a whole number from 1 on"),
        (("--jobs", "0"), "argument --jobs: '0' is not a whole number from 1 on"),
        (("--gate",), "--gate: the goals are beside ONNX Runtime"),
        (("--target", "nosuch"), "unknown target 'nosuch'"),
        (("--calibration", "best"), "--calibration best: no such method"),
    ],
)
def test_impossible_options(
    words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "zoo", *words]) == 2
    assert why in capsys.readouterr().err.splitlines()[0]


def test_noise_is_no_file(tmp_path: Path) -> None:
    row = attempt(task(tmp_path, ZooRecipe(task="images", data=RandomInputs())))
    assert isinstance(row, Tried)
    assert (row.device, row.labels, row.use.predicted_cycles) == (None, 0, None)
