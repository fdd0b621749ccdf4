"""Files that are no models, damaged or hostile: a reason, in bounded time and memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, node, saved, saved_beside
from tilefarm.errors import ModelError

from driver.network import import_model
from driver.network.examples import DEMO_MODEL
from driver.network.frontend.shape_inference import inferred_shapes

CONVOLUTION = [node("Conv", ["x", "w"], "y")]
WEIGHT = {"w": np.zeros((1, 3, 1, 1), np.float32)}


def refused(made: onnx.ModelProto, folder: Path) -> str:
    """What the importer says, without the path in front."""
    file = saved(made, folder)
    with pytest.raises(ModelError) as caught:
        import_model(file)
    return caught.value.what.removeprefix(f"{file}: ")


def external(location: str, **entries: str) -> onnx.ModelProto:
    """A convolution whose weights of 12 bytes lie in another file."""
    made = model(CONVOLUTION, WEIGHT)
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder with weights and what must not be read: links, a pipe, a folder."""
    place = tmp_path / "model"
    place.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(12))
    (place / "short.bin").write_bytes(b"1234")
    (place / "good.bin").write_bytes(bytes(16))
    (place / "folder").mkdir()
    (place / "link.bin").symlink_to(tmp_path / "secret.bin")
    (place / "ring.bin").symlink_to(place / "ring.bin")
    os.mkfifo(place / "pipe.bin")
    return place


@pytest.mark.parametrize(
    ("location", "entries", "said"),
    [
        ("../secret.bin", {}, "it lies outside the model's folder"),
        ("folder/../../secret.bin", {}, "it lies outside the model's folder"),
        ("/etc/hostname", {}, "it lies outside the model's folder"),
        ("link.bin", {}, "it lies outside the model's folder"),
        ("ring.bin", {}, "external data 'ring.bin': "),
        ("absent.bin", {}, "No such file or directory"),
        ("folder", {}, "it is not a file"),
        ("pipe.bin", {}, "it is not a file"),
        ("a\0b", {}, "null"),
        ("", {}, "no file is named"),
        ("short.bin", {"length": "12"}, "cut off: 12 bytes from byte 0 on, of 4"),
        ("good.bin", {"offset": "8", "length": "12"}, "cut off: 12 bytes from byte 8 on, of 16"),
        ("good.bin", {"length": str(1 << 62)}, f"cut off: {1 << 62} bytes"),
        ("good.bin", {"offset": str(1 << 70)}, f"cut off: 0 bytes from byte {1 << 70} on"),
        ("good.bin", {"offset": "-4", "length": "12"}, "12 bytes from byte -4 on are no place"),
        ("good.bin", {"length": "-12"}, "-12 bytes from byte 0 on are no place"),
        ("good.bin", {"length": "twelve"}, "invalid literal"),
        ("good.bin", {}, "cannot be decoded"),
    ],
)
def test_external_weights_that_cannot_be_had(
    location: str, entries: dict[str, str], said: str, folder: Path
) -> None:
    found = refused(external(location, **entries), folder)
    assert found.startswith("weight 'w': ")
    assert said in found
    assert "reasons" not in found, "nodes that read the weight are not blamed"


def test_external_weights_are_read(folder: Path) -> None:
    made = external("good.bin", offset="4", length="12")
    (folder / "good.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    graph = import_model(saved(made, folder))
    (convolution,) = graph.nodes
    assert getattr(convolution.op, "weight").ravel().tolist() == [1, 2, 3]  # noqa: B009


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            lambda file: file.unlink(),
            "No such file or directory\n  try: weights belong in the model",
        ),
        (lambda file: file.write_bytes(b"1234"), ", of 4\n  try: copy or download the file with"),
    ],
)
def test_a_file_of_many_weights_is_one_reason(
    damage: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    nodes = [node("Conv", ["x", "w", "b"], "c"), node("Conv", ["c", "v"], "y")]
    weights = {
        "w": np.ones((2, 3, 1, 1), np.float32),
        "b": np.ones(2, np.float32),
        "v": np.ones((2, 2, 1, 1), np.float32),
    }
    file = saved_beside(model(nodes, weights), tmp_path)
    import_model(file)
    damage(tmp_path / "w/net.bin")
    with pytest.raises(ModelError) as caught:
        import_model(file)
    assert said in str(caught.value)
    assert str(caught.value).count("\n") == 1


def test_only_weights_may_be_external(folder: Path) -> None:
    value = external("good.bin", length="12").graph.initializer[0]
    nodes = [node("Constant", [], "w", value=value), *CONVOLUTION]
    assert "external data, which only weights" in refused(model(nodes), folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dims": [1, 3, 1 << 40, 1]}, "has the shape [1, 3, 1099511627776, 1], but only"),
        ({"dims": [1 << 62, 1 << 62]}, "but only"),
        ({"dims": [-1, 3, 1, 1]}, "has the shape [-1, 3, 1, 1]"),
        ({"dims": [1, 2, 1, 1]}, "cannot be decoded"),
        ({"data_type": 0}, "has the unknown type 0"),
        ({"data_type": 99}, "has the unknown type 99"),
        ({"data_type": onnx.TensorProto.INT4, "dims": [1, 1 << 40]}, "but only"),
    ],
)
def test_weights_whose_sizes_do_not_agree(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    made = model(CONVOLUTION, WEIGHT)
    tensor = made.graph.initializer[0]
    if "dims" in change:
        del tensor.dims[:]
        tensor.dims.extend(change["dims"])
    tensor.data_type = change.get("data_type", tensor.data_type)
    assert said in refused(made, tmp_path)


def test_a_model_that_ends_onnxs_inference_of_shapes(tmp_path: Path) -> None:
    """Its C++ code aborts on an extent below zero that is sliced."""
    cut = {name: np.array([k], np.int64) for name, k in (("from", 0), ("to", 5), ("axis", 1))}
    nodes = [node("Slice", ["x", "from", "to", "axis"], "s"), node("Relu", ["s"], "y")]
    made = model(nodes, cut, x=(1, -5, 4, 4))
    assert inferred_shapes(made) == {}
    assert refused(made, tmp_path).startswith("input 'x' has the shape [1, -5, 4, 4]; every")


def test_what_onnx_says_of_a_damaged_model_is_not_shown(
    capfd: pytest.CaptureFixture[str],
) -> None:
    made = model([node("Relu", ["x"], "y")])
    del made.opset_import[:]
    assert inferred_shapes(made) == {}
    assert capfd.readouterr() == ("", "")


def test_shapes_are_inferred_in_the_child() -> None:
    made = model([node("Hardmax", ["x"], "h"), node("Relu", ["h"], "y")])
    assert inferred_shapes(made) == {"h": (1, 3, 4, 4)}


def test_names_that_are_not_text(tmp_path: Path) -> None:
    content = model(CONVOLUTION, WEIGHT).SerializeToString().replace(b"y_n", b"y\xffn")
    file = tmp_path / "model.onnx"
    file.write_bytes(content)
    with pytest.raises(ModelError, match="damaged: a name in it is not text"):
        import_model(file)


def test_files_that_are_not_models(tmp_path: Path) -> None:
    for content in (b"", b"hello, this is a text\n", b"\x89PNG\r\n\x1a\n" * 40, b"\0" * 100):
        file = tmp_path / "model.onnx"
        file.write_bytes(content)
        with pytest.raises(ModelError, match="not an ONNX file"):
            import_model(file)
    with pytest.raises(ModelError, match=r"cannot read .*No such file"):
        import_model(tmp_path / "absent.onnx")
    with pytest.raises(ModelError, match=r"cannot read .*: it is not a file"):
        import_model(tmp_path)
    with pytest.raises(ModelError, match=r"cannot read .*null"):
        import_model(tmp_path / "a\0b")


def test_a_file_larger_than_protobuf_allows(tmp_path: Path) -> None:
    file = tmp_path / "large.onnx"
    with file.open("wb") as stream:
        stream.truncate((1 << 31) + 1)
    with pytest.raises(ModelError, match="larger than 2 GiB"):
        import_model(file)


def test_a_file_that_was_cut_off_anywhere(tmp_path: Path) -> None:
    content = DEMO_MODEL.read_bytes()
    file = tmp_path / "cut.onnx"
    for length in np.linspace(1, len(content) - 1, 60, dtype=int):
        file.write_bytes(content[:length])
        with pytest.raises(ModelError):
            import_model(file)
