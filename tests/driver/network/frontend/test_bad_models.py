"""What cannot be taken: one error that says which, why and what to do, and never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, node, saved
from tilefarm.errors import ModelError

from driver.network import import_model

RELU = [node("Relu", ["x"], "y")]


def refused(made: onnx.ModelProto, folder: Path) -> str:
    """What the importer says, without the path in front."""
    with pytest.raises(ModelError) as caught:
        import_model(saved(made, folder))
    assert caught.value.exit_code == 2
    return caught.value.what.removeprefix(f"{folder / 'model.onnx'}: ")


def test_every_offending_node_is_listed(tmp_path: Path) -> None:
    nodes = [
        node("Bernoulli", ["x"], "a"),
        node("Relu", ["a"], "b"),
        node("Conv", ["x", "w"], "c", group=2),
        node("LSTM", ["b"], "d"),
        node("Det", ["d"], "e"),
        node("Add", ["c", "e"], "y"),
    ]
    weights = {"w": np.zeros((3, 1, 1, 1), np.float32)}
    assert refused(model(nodes, weights), tmp_path) == (
        "cannot be taken for 4 reasons:\n"
        "  a_n (Bernoulli): operator is not supported\n"
        "  c_n (Conv): weight [3, 1, 1, 1] of group 2 does not fit input [1, 3, 4, 4]\n"
        "  d_n (LSTM): operator is not supported\n"
        "  e_n (Det): operator is not supported"
    )


def test_nodes_behind_a_refused_one_are_checked_too(tmp_path: Path) -> None:
    """Grouped convolutions in a row: the second is listed although the first made no tensor."""
    weights = {"w": np.zeros((3, 1, 1, 1), np.float32), "full": np.zeros((3, 3, 1, 1), np.float32)}
    nodes = [
        node("Conv", ["x", "w"], "a", group=2),
        node("Conv", ["a", "full"], "b"),
        node("Conv", ["b", "w"], "c", group=2),
        node("Sqrt", ["full"], "root"),
        node("Det", ["full"], "bent"),
        node("Conv", ["c", "bent"], "y"),
    ]
    assert refused(model(nodes, weights), tmp_path) == (
        "cannot be taken for 3 reasons:\n"
        "  a_n (Conv): weight [3, 1, 1, 1] of group 2 does not fit input [1, 3, 4, 4]\n"
        "  c_n (Conv): weight [3, 1, 1, 1] of group 2 does not fit input [1, 3, 4, 4]\n"
        "  bent_n (Det): operator is not supported"
    )


def test_a_node_without_a_name_has_that_of_its_output(tmp_path: Path) -> None:
    made = model([onnx.helper.make_node("Bernoulli", ["x"], ["y"])])
    assert refused(made, tmp_path) == "y (Bernoulli): operator is not supported"


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
        "the network is cyclic; these nodes wait in a ring: a_n (Add), b_n (Relu)"
    )


def test_a_network_without_nodes_is_not_called_cut_off(tmp_path: Path) -> None:
    made = model(RELU)
    del made.graph.node[:]
    assert refused(made, tmp_path) == "the network computes nothing: it has no nodes"


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (("N", 3, 4, 4), "dynamic shape [N, 3, 4, 4]"),
        ((None, 3, 4, 4), "dynamic shape [?, 3, 4, 4]"),
        ((1, 3, "h", "w"), "dynamic shape [1, 3, h, w]"),
        ((0, 3, 4, 4), "the shape [0, 3, 4, 4]; every extent must be at least 1"),
        ((0, 3, "h", 4), "dynamic shape [0, 3, h, 4]"),
        ((1, 1 << 20, 1 << 20), "too many"),
    ],
)
def test_shapes_that_are_not_fixed(
    shape: tuple[int | str | None, ...], said: str, tmp_path: Path
) -> None:
    assert said in refused(model(RELU, x=shape), tmp_path)


def test_a_dynamic_batch_has_a_hint(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        import_model(saved(model(RELU, x=("batch", 3, 4, 4)), tmp_path))
    assert caught.value.hint == "--shape batch=1"


def without_shape(made: onnx.ModelProto) -> None:
    made.graph.input[0].type.tensor_type.ClearField("shape")


def complex_numbers(made: onnx.ModelProto) -> None:
    made.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.COMPLEX64


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


NUMBERS = "only float32, integers and truth values are supported"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without_shape, "input 'x' has no shape"),
        (complex_numbers, "input 'x' is complex64; " + NUMBERS),
        (unknown_type, "input 'x' is of the unknown type 119; " + NUMBERS),
        (
            without_input,
            "cannot be taken for 2 reasons:\n  the network has no input\n"
            "  y_n (Relu): input 'x' is neither a weight nor made by a node",
        ),
        (without_opset, "names no operator set; 7 to 28 are supported"),
        (another_output, "no node makes the output 'z'"),
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


@pytest.mark.parametrize("opset", [6, 29])
def test_operator_sets_outside_the_range(opset: int, tmp_path: Path) -> None:
    got = refused(model(RELU, opset=opset), tmp_path)
    assert got == f"operator set {opset} is not supported, only 7 to 28"


def test_reasons_of_every_kind_are_listed_at_once(tmp_path: Path) -> None:
    """Inputs, weights, names, rings, operators, values and outputs: one error."""
    body = onnx.helper.make_graph([node("Neg", ["x"], "n")], "body", [], [])
    nodes = [
        node("Conv", ["x", "w"], "a"),
        node("If", ["x"], "b", then_branch=body, else_branch=body),
        node("Add", ["b", "d"], "c"),
        node("Bernoulli", ["c"], "d"),
        node("Relu", ["x"], "a"),
        node("Conv", ["a", "nan"], "e"),
        node("MaxPool", ["x"], "f", kernel_shape="two"),
        node("Concat", ["a", "d", "e", "f"], "y", axis=1),
    ]
    weights = {
        "w": np.zeros((3, 3, 1, 1), np.float32),
        "nan": np.full((1, 3, 1, 1), np.nan, np.float32),
        "bad": np.zeros(4, np.float32),
    }
    made = model(nodes, weights, x=("N", 3, 4, 4), opset=6)
    made.graph.initializer.add().CopyFrom(made.graph.initializer[0])
    made.graph.initializer[2].dims[:] = [5]
    made.graph.output.add().CopyFrom(onnx.helper.make_tensor_value_info("z", 1, None))
    assert refused(made, tmp_path) == (
        "cannot be taken for 11 reasons:\n"
        "  operator set 6 is not supported, only 7 to 28\n"
        "  weight 'bad': cannot be decoded (cannot reshape array of size 4 into shape (5,))\n"
        "  weight 'w': the file has two of that name\n"
        "  input 'x' has the dynamic shape [N, 3, 4, 4]; every extent must be a fixed number\n"
        "  a_n (Relu): its output 'a' is made twice\n"
        "  the network is cyclic; these nodes wait in a ring: c_n (Add), d_n (Bernoulli)\n"
        "  b_n (If): data decide its condition 'x'; it must be known at import\n"
        "  e_n (Conv): weight 'nan' contains NaN\n"
        "  f_n (MaxPool): attribute 'kernel_shape' is not a list of integers\n"
        "  d_n (Bernoulli): operator is not supported\n"
        "  no node makes the output 'z'"
    )


def test_hints_of_all_reasons(tmp_path: Path) -> None:
    made = model([node("Bernoulli", ["x"], "y")], x=("N", 3, 4, 4))
    with pytest.raises(ModelError) as caught:
        import_model(saved(made, tmp_path))
    assert caught.value.hint == (
        "--shape N=1; export without these, or put what is equal in their place"
    )


def two_inputs(made: onnx.ModelProto) -> None:
    made.graph.input.add().CopyFrom(made.graph.input[0])


def unnamed_input(made: onnx.ModelProto) -> None:
    two_inputs(made)
    made.graph.input[1].name = ""


def sequence(made: onnx.ModelProto) -> None:
    made.graph.input.add(name="s").type.sequence_type.elem_type.tensor_type.elem_type = 1


def two_outputs(made: onnx.ModelProto) -> None:
    made.graph.output.add().CopyFrom(made.graph.output[0])


def no_output(made: onnx.ModelProto) -> None:
    del made.graph.output[:]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (two_inputs, "input 'x': the file has two of that name"),
        (unnamed_input, "input '': it has no name"),
        (sequence, "input 's' is a sequence, not a tensor"),
        (two_outputs, "output 'y': the file has two of that name"),
        (no_output, "the network has no output"),
    ],
)
def test_ends_with_something_odd(
    change: Callable[[onnx.ModelProto], None], said: str, tmp_path: Path
) -> None:
    made = model(RELU)
    change(made)
    assert refused(made, tmp_path) == said


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (node("MatMul", ["x"], "y"), "input 1 (B) is missing"),
        (node("Gemm", ["x", ""], "y"), "input 1 (B) is missing"),
        (node("Conv", [], "y"), "input 0 (X) is missing"),
        (node("Relu", ["x", "x"], "y"), "has 2 inputs, but at most 1 are defined"),
        (node("Relu", ["x"], "y", "z"), "has 2 outputs, but at most 1 are defined"),
        (node("Concat", ["x", "x"], "y"), "attribute 'axis' is missing"),
        (node("Transpose", ["x"], "y", perm=[0, 0, 1, 2]), "perm"),
        (node("Conv", ["x", "x", "x", "x"], "y"), "has 4 inputs, but at most 3 are defined"),
    ],
    ids=lambda case: "" if isinstance(case, str) else case.op_type,
)
def test_nodes_that_are_not_formed_as_onnx_defines_them(
    bad: onnx.NodeProto, said: str, tmp_path: Path
) -> None:
    found = refused(model([bad]), tmp_path)
    assert found.startswith(f"y_n ({bad.op_type}): ")
    assert said in found
