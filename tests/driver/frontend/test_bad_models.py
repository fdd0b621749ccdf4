"""What cannot be taken: one error that says which, why and what to do, and never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from kit.onnx_models import model, node, saved
from tilefarm.errors import ModelError

from driver.demo import MODEL
from driver.frontend import import_model

RELU = [node("Relu", ["x"], "y")]


def refused(made: onnx.ModelProto, folder: Path) -> str:
    """What the importer says, without the path in front."""
    with pytest.raises(ModelError) as caught:
        import_model(saved(made, folder))
    assert caught.value.exit_code == 2
    return caught.value.what.removeprefix(f"{folder / 'model.onnx'}: ")


def test_every_offending_node_is_listed(tmp_path: Path) -> None:
    nodes = [
        node("Sigmoid", ["x"], "a"),
        node("Relu", ["a"], "b"),
        node("Conv", ["x", "w"], "c", group=3),
        node("LSTM", ["b"], "d"),
        node("Mish", ["d"], "e"),
        node("Add", ["c", "e"], "y"),
    ]
    weights = {"w": np.zeros((3, 1, 1, 1), np.float32)}
    assert refused(model(nodes, weights), tmp_path) == (
        "4 nodes cannot be taken:\n"
        "  a_n (Sigmoid): operator is not supported\n"
        "  c_n (Conv): group 3; only group 1 is supported\n"
        "  d_n (LSTM): operator is not supported\n"
        "  e_n (Mish): operator is not supported"
    )


def test_nodes_behind_a_refused_one_are_checked_too(tmp_path: Path) -> None:
    """Grouped convolutions in a row: the second is listed although the first made no tensor."""
    weights = {"w": np.zeros((3, 1, 1, 1), np.float32), "full": np.zeros((3, 3, 1, 1), np.float32)}
    nodes = [
        node("Conv", ["x", "w"], "a", group=3),
        node("Conv", ["a", "full"], "b"),
        node("Conv", ["b", "w"], "c", group=3),
        node("Sqrt", ["full"], "root"),
        node("Tanh", ["full"], "bent"),
        node("Conv", ["c", "bent"], "y"),
    ]
    assert refused(model(nodes, weights), tmp_path) == (
        "3 nodes cannot be taken:\n"
        "  a_n (Conv): group 3; only group 1 is supported\n"
        "  c_n (Conv): group 3; only group 1 is supported\n"
        "  bent_n (Tanh): operator is not supported"
    )


def test_a_node_without_a_name_has_that_of_its_output(tmp_path: Path) -> None:
    made = model([onnx.helper.make_node("Sigmoid", ["x"], ["y"])])
    assert refused(made, tmp_path) == "y (Sigmoid): operator is not supported"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.array([[np.nan, 1.0]] * 48), "weight 'w' contains NaN"),
        (np.array([[np.inf, 1.0]] * 48), "weight 'w' contains an infinity"),
    ],
)
def test_weights_that_are_not_numbers(values: np.ndarray, said: str, tmp_path: Path) -> None:
    nodes = [node("Flatten", ["x"], "f"), node("Gemm", ["f", "w"], "y")]
    got = refused(model(nodes, {"w": values.astype(np.float32)}), tmp_path)
    assert got == f"y_n (Gemm): {said}".replace("weight", "B")


def test_weights_that_overflow_when_folded(tmp_path: Path) -> None:
    nodes = [node("Mul", ["x", "c"], "a"), node("Mul", ["a", "c"], "y")]
    made = model(nodes, {"c": np.full((), 1e30, np.float32)})
    assert "folded weights leave float32" in refused(made, tmp_path)


def test_a_missing_weight(tmp_path: Path) -> None:
    made = model([node("Conv", ["x", "w"], "y")])
    assert refused(made, tmp_path) == (
        "y_n (Conv): input 'w' is neither a weight nor made by a node"
    )


def test_nodes_in_a_ring(tmp_path: Path) -> None:
    made = model([node("Add", ["x", "b"], "a"), node("Relu", ["a"], "b"), node("Relu", ["b"], "y")])
    assert refused(made, tmp_path) == (
        "the network is cyclic; these nodes wait in a ring: a_n (Add), b_n (Relu), y_n (Relu)"
    )


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (("N", 3, 4, 4), "dynamic shape [N, 3, 4, 4]"),
        ((None, 3, 4, 4), "dynamic shape [?, 3, 4, 4]"),
        ((1, 3, "h", "w"), "dynamic shape [1, 3, h, w]"),
        ((0, 3, 4, 4), "dynamic shape [0, 3, 4, 4]"),
        ((1, 1 << 20, 1 << 20), "too many"),
        ((5,), "has shape [5], not [N, C, ...]"),
    ],
)
def test_shapes_that_are_not_fixed(
    shape: tuple[int | str | None, ...], said: str, tmp_path: Path
) -> None:
    assert said in refused(model(RELU, x=shape), tmp_path)


def test_a_dynamic_batch_has_a_hint(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        import_model(saved(model(RELU, x=("batch", 3, 4, 4)), tmp_path))
    assert caught.value.hint == "export with a fixed batch of 1 (no dynamic axes)"


def without_shape(made: onnx.ModelProto) -> None:
    made.graph.input[0].type.tensor_type.ClearField("shape")


def integers(made: onnx.ModelProto) -> None:
    made.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.UINT8


def unknown_type(made: onnx.ModelProto) -> None:
    made.graph.input[0].type.tensor_type.elem_type = 119


def without_input(made: onnx.ModelProto) -> None:
    del made.graph.input[:]


def without_opset(made: onnx.ModelProto) -> None:
    del made.opset_import[:]


def another_output(made: onnx.ModelProto) -> None:
    made.graph.output[0].name = "z"


def input_as_output(made: onnx.ModelProto) -> None:
    made.graph.output[0].name = "x"


def made_twice(made: onnx.ModelProto) -> None:
    made.graph.node.append(node("Neg", ["x"], "y"))


def foreign(made: onnx.ModelProto) -> None:
    made.graph.node[0].domain = "com.microsoft"


def odd_attribute(made: onnx.ModelProto) -> None:
    made.graph.node[0].CopyFrom(node("MaxPool", ["x"], "y", kernel_shape="two"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_shape, "input 'x' has no shape"),
        (integers, "input 'x' is uint8; only float32 is supported"),
        (unknown_type, "input 'x' is of the unknown type 119; only float32 is supported"),
        (without_input, "the network has no input"),
        (without_opset, "names no operator set; 8 to 21 are supported"),
        (another_output, "no node makes the output z"),
        (input_as_output, "output 'x' is not computed from the input"),
        (made_twice, "y_n (Neg): its output 'y' is made twice"),
        (foreign, "y_n (Relu): operators of the domain 'com.microsoft' are not supported"),
        (odd_attribute, "y_n (MaxPool): attribute 'kernel_shape' is not a list of integers"),
    ],
)
def test_models_with_something_odd(
    change: Callable[[onnx.ModelProto], None], said: str, tmp_path: Path
) -> None:
    made = model(RELU)
    change(made)
    assert refused(made, tmp_path) == said


@pytest.mark.parametrize("opset", [7, 22])
def test_operator_sets_outside_the_range(opset: int, tmp_path: Path) -> None:
    got = refused(model(RELU, opset=opset), tmp_path)
    assert got == f"operator set {opset} is not supported, only 8 to 21"


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("../secret.bin", "lie outside the model's folder"),
        ("/etc/hostname", "lie outside the model's folder"),
        ("absent.bin", "No such file or directory"),
        ("short.bin", "are cut off"),
    ],
)
def test_external_weights_that_cannot_be_had(location: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "short.bin").write_bytes(b"1234")
    made = model([node("Conv", ["x", "w"], "y")], {"w": np.zeros((1, 3, 1, 1), np.float32)})
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    tensor.external_data.add(key="length", value="12")
    assert said in refused(made, tmp_path)


def test_files_that_are_not_models(tmp_path: Path) -> None:
    for content in (b"", b"hello, this is a text\n", b"\x89PNG\r\n\x1a\n" * 40, b"\0" * 100):
        file = tmp_path / "model.onnx"
        file.write_bytes(content)
        with pytest.raises(ModelError, match="not an ONNX file"):
            import_model(file)
    with pytest.raises(ModelError, match=r"cannot read .*No such file"):
        import_model(tmp_path / "absent.onnx")
    with pytest.raises(ModelError, match="cannot read"):
        import_model(tmp_path)


def test_a_file_that_was_cut_off_anywhere(tmp_path: Path) -> None:
    content = MODEL.read_bytes()
    file = tmp_path / "cut.onnx"
    for length in np.linspace(1, len(content) - 1, 60, dtype=int):
        file.write_bytes(content[:length])
        with pytest.raises(ModelError):
            import_model(file)


@pytest.mark.filterwarnings("error")
def test_damaged_bytes_are_taken_or_refused_but_never_crash(tmp_path: Path) -> None:
    content = bytearray(MODEL.read_bytes())
    head = len(content) - 4000  # nodes and types lie around the weights; damage those
    rng = np.random.default_rng(1)
    file = tmp_path / "damaged.onnx"
    taken = 0
    for _ in range(300):
        damaged = bytearray(content)
        for place in rng.choice([*range(3000), *range(head, len(content))], 3):
            damaged[place] = rng.integers(256)
        file.write_bytes(damaged)
        try:
            import_model(file)
        except ModelError:
            continue
        taken += 1
    assert 0 < taken < 300
