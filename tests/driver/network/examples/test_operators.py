"""Operators in words become networks that are imported with the shapes that were said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tilefarm.errors import SettingsError

from driver.network import import_model, load_data, model_files, operator_lines, short_name
from driver.network.examples.operator_kinds import OPERATOR_KINDS
from driver.network.examples.operators import EXAMPLE, operators_in, operators_title

_SIZES = {"h": 9, "w": 7, "c": 6, "ci": 4, "co": 8, "m": 5, "n": 3, "k": 2}


def _smallest(operator: str) -> str:
    return " ".join(
        [operator, *(f"{key}={_SIZES[key]}" for key in OPERATOR_KINDS[operator].needed)]
    )


@pytest.mark.parametrize("operator", OPERATOR_KINDS)
def test_an_operator_has_the_shapes_that_its_kind_says(operator: str, tmp_path: Path) -> None:
    (said,) = operators_in(_smallest(operator) + " batch=2")
    files = model_files(f"op:{said}", None, tmp_path)
    graph = import_model(files.model)
    assert files.calibration is not None
    data = load_data(files.calibration, graph)
    shapes = said.graph
    assert tuple(i.shape for i in graph.inputs) == shapes.inputs
    assert {graph.shapes[out.tensor] for out in graph.outputs} == {shapes.output}
    assert data.samples % 2 == 0
    assert any(line.startswith(f"{operator} ") for line in operator_lines())


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("conv2d ci=4 co=6 h=9 w=9 stride=2 pad=1", (1, 6, 5, 5)),
        ("conv2d ci=4 co=6 h=9 w=9 dilation=2 groups=2 relu=1", (1, 6, 5, 5)),
        ("conv2d_transpose ci=4 co=6 h=3 w=3 stride=2 kernel=4 pad=1", (1, 6, 6, 6)),
        ("depthwise2d c=5 h=8 w=8 kernel=5", (1, 5, 4, 4)),
        ("max_pool2d c=5 h=8 w=8 kernel=2 stride=2", (1, 5, 4, 4)),
    ],
)
def test_windows_are_those_of_onnx(text: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    graph = import_model(model_files(f"op:{text}", None, tmp_path).model)
    assert [graph.shapes[out.tensor] for out in graph.outputs] == [shape]


def test_several_stand_side_by_side(tmp_path: Path) -> None:
    text = "# layers\ngemm m=4 n=6 k=5 # a remark\n\nsoftmax n=3; gemm k=5 m=4 n=6\n"
    assert [str(each) for each in operators_in(text)] == ["gemm m=4 n=6 k=5", "softmax n=3"]
    graph = import_model(model_files(f"op:{text}", None, tmp_path).model)
    assert [i.shape for i in graph.inputs] == [(1, 4, 5), (1, 3)]
    assert len(graph.outputs) == 2
    assert short_name(f"op:{text}") == "2_operators"


def test_the_same_words_are_the_same_bytes(tmp_path: Path) -> None:
    first = model_files(f"op:{EXAMPLE}", None, tmp_path / "a")
    second = model_files(Path("op:gemm k=64 n=64 m=64"), None, tmp_path / "b")
    assert first.model.name == "gemm_m64_n64_k64.onnx"
    assert first.model.read_bytes() == second.model.read_bytes()
    assert first.calibration is not None
    assert second.calibration is not None
    ours, theirs = np.load(first.calibration), np.load(second.calibration)
    assert np.array_equal(ours["x"], theirs["x"])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no operator is named"),
        ("foo m=3", "no operator foo is known"),
        ("gemm m=64 n=64", "lacks k"),
        ("gemm m=64 n=0 k=2", "n=0 is no whole number from 1"),
        ("gemm m=64 n=2 k=-2", "k=-2 is no whole number"),
        ("gemm m=64 n=1e3 k=2", "n=1e3 is no whole number"),
        ("gemm m=64 n=6 k=2 z=3", "no size z"),
        ("gemm m=1 m=2 n=3 k=4", "m is said twice"),
        ("conv2d ci=3 co=4 h=2 w=2 kernel=5", "the window is larger than the image"),
        ("conv2d ci=3 co=4 h=8 w=8 groups=2", "2 groups do not divide its channels"),
        ("gemm m=999999 n=999999 k=3", "a tensor has"),
        ("gemm m=2 n=2 k=2 batch=2; softmax n=5", "another batch than"),
        ("gemm\x1b[2J m=2", r"gemm\x1b[2J"),
        ("gemm m=1 n=1 k=9999999999", "k=9999999999 is no whole number from 1 to 999,999,999"),
        ("max_pool2d c=4 h=4 w=4 pad=3", "its pad is as large as its window"),
        ("avg_pool2d c=4 h=4 w=4 kernel=1 pad=9", "its pad is as large as its window"),
    ],
)
def test_what_is_not_understood_is_said(text: str, what: str) -> None:
    with pytest.raises(SettingsError) as raised:
        operators_in(text)
    assert what in raised.value.what
    assert raised.value.hint


def test_a_long_title_is_cut() -> None:
    text = "conv2d ci=100 co=100 h=1000 w=1000 stride=2 pad=3 kernel=7 dilation=2 relu=1"
    assert len(operators_title(operators_in(text))) == 60
