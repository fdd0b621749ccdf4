"""Arrays from the user: accepted layouts, and a reason for everything else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.networks.random_networks import Builder
from numpy.typing import NDArray
from tilefarm.errors import DataError

from driver.network import load_data
from driver.network.graph.grid import Grid
from driver.network.graph.ir import (
    Add,
    Graph,
    GraphInput,
    GraphNode,
    GraphOutput,
    MaxPool2d,
    Window,
)
from driver.network.graph.shapes import graph_of


def graph(*shape: int) -> Graph:
    b = Builder(shape)
    return b.graph(b.put(MaxPool2d(window=Window(kernel=(1, 1))), "x"))


RGB = graph(1, 3, 4, 5)
GRAY = graph(1, 1, 4, 5)


def saved(folder: Path, **arrays: Any) -> Path:
    file = folder / "data.npz"
    np.savez(file, **arrays)
    return file


def said(file: Path, net: Graph = RGB) -> str:
    with pytest.raises(DataError) as caught:
        load_data(file, net)
    assert caught.value.exit_code == 2
    return caught.value.what.removeprefix(f"{file}: ")


@pytest.mark.parametrize("name", ["x", "X"])
def test_arrays_in_the_models_layout(name: str, tmp_path: Path) -> None:
    x = np.arange(2 * 60).reshape(2, 3, 4, 5).astype(np.uint8)
    data = load_data(saved(tmp_path, **{name: x}, Y=np.array([1, 0], np.uint8)), RGB)
    assert data.samples == 2
    assert data.inputs["x"].dtype == np.float32
    assert (data.inputs["x"] == x).all()
    assert data.labels is not None
    assert data.labels.tolist() == [1, 0]
    assert data.first(1).samples == 1


def test_labels_are_integers_or_reals_of_any_shape(tmp_path: Path) -> None:
    x = np.zeros((2, 3, 4, 5))
    for y in (np.ones((2, 4, 5), bool), np.array([[1], [0]]), np.full((2, 3), 0.5, np.float16)):
        data = load_data(saved(tmp_path, x=x, y=y), RGB)
        assert data.labels is not None
        assert data.labels.dtype == (np.float64 if y.dtype.kind == "f" else np.int64)
        assert (data.labels == y).all()
        assert data.first(1).labels is not None


def test_images_as_files_hold_them(tmp_path: Path) -> None:
    x = np.arange(2 * 60).reshape(2, 4, 5, 3).astype(np.uint8)
    data = load_data(saved(tmp_path, x=x), RGB)
    assert data.inputs["x"].shape == (2, 3, 4, 5)
    assert data.inputs["x"][1, 2, 3, 4] == x[1, 3, 4, 2]
    assert data.labels is None


def test_unit_axes_may_be_left_out(tmp_path: Path) -> None:
    x = np.ones((7, 4, 5), np.float16)
    assert load_data(saved(tmp_path, x=x), GRAY).inputs["x"].shape == (7, 1, 4, 5)


def test_one_sample_needs_its_axis(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"shape \[3, 4, 5\]; .* needs \[samples, 3, 4, 5\]"
    ) as caught:
        load_data(saved(tmp_path, x=np.ones((3, 4, 5))), RGB)
    assert caught.value.hint == "x[None] is an array of one sample"


def test_a_model_that_transposes_takes_its_own_layout(tmp_path: Path) -> None:
    given = GraphInput(name="image", shape=(1, 3, 4, 3), axes=(0, 3, 1, 2))
    b = Builder((1, 3, 4, 3))
    b.put(MaxPool2d(window=Window(kernel=(1, 1))), "x")
    node = b.nodes[0]
    net = graph_of(
        "t", [given], [GraphOutput(name="y", tensor="t0")], [replace(node, inputs=("image",))]
    )
    x = np.arange(36.0).reshape(1, 4, 3, 3)
    loaded = load_data(saved(tmp_path, image=x), net).inputs["image"]
    assert loaded[0, 2, 3, 1] == x[0, 3, 1, 2]


def test_an_input_of_integers_takes_integers(tmp_path: Path) -> None:
    grid = Grid(0.5, 120, "uint8")
    net = replace(GRAY, inputs=(replace(GRAY.inputs[0], grid=grid),))
    x = np.arange(2 * 20).reshape(2, 1, 4, 5)
    assert (load_data(saved(tmp_path, x=x), net).inputs["x"] == (x - 120) * 0.5).all()
    for bad in (x + 0.5, x - 1, x + 240):
        assert said(saved(tmp_path, x=bad), net) == (
            "array 'x' has values that are not whole numbers of 0 to 255,"
            " but the network takes uint8"
        )


X = np.ones((2, 3, 4, 5), np.float32)
NAN = X.copy()
NAN[1, 0, 0, 0] = np.nan


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        (
            {"x": X[:, :2]},
            "array 'x' has shape [2, 2, 4, 5]; input 'x' needs [samples, 3, 4, 5]",
        ),
        ({"x": X.reshape(2, 60)}, "array 'x' has shape [2, 60]"),
        ({"x": np.float32(1)}, "array 'x' has shape []"),
        ({"x": NAN}, "array 'x' contains NaN, first in sample 1"),
        ({"x": X.astype(np.float64) * 1e300}, "contains a value beyond float32"),
        ({"x": X[:0]}, "array 'x' is empty: [0, 3, 4, 5]"),
        ({"x": X.astype(np.complex64)}, "array 'x' has type complex64, not real numbers"),
        ({"x": X.astype(str)}, "not real numbers"),
        ({"x": X > 0}, "array 'x' has type bool"),
        ({"images": X}, "no array for input 'x'; found images float32[2, 3, 4, 5]"),
        ({}, "no array for input 'x'; found nothing"),
        ({"x": X, "y": np.array([1, 2, 3])}, "labels 'y' have shape [3], but there are 2 samples"),
        ({"x": X, "y": np.array(1)}, "labels 'y' have shape [], but there are 2 samples"),
        ({"x": X, "y": np.ones((2, 0))}, "labels 'y' have shape [2, 0]"),
        ({"x": X, "y": np.array(["a", "b"])}, "labels 'y' have type <U1, not numbers"),
        ({"x": X, "y": np.array([0.5, np.nan])}, "labels 'y' contain nan, first in sample 1"),
        ({"x": X, "y": np.array([np.inf, 0])}, "labels 'y' contain inf, first in sample 0"),
        ({"x": X, "y": np.array([1, 2**64 - 1], np.uint64)}, f"labels 'y' reach {2**64 - 1}"),
    ],
)
def test_arrays_that_do_not_fit(
    arrays: dict[str, NDArray[Any]], reason: str, tmp_path: Path
) -> None:
    assert reason in said(saved(tmp_path, **arrays))


def test_arrays_that_nothing_uses_are_noted(tmp_path: Path) -> None:
    """Labels by another name would otherwise be missing without a word."""
    data = load_data(saved(tmp_path, x=X, labels=np.array([1, 2]), X=X), RGB)
    assert data.labels is None
    assert data.first(1).notes == ("nothing uses 2 arrays 'labels', 'X': labels are 'y' or 'Y'",)
    assert not load_data(saved(tmp_path, x=X, y=np.array([1, 2])), RGB).notes


def test_python_objects_are_never_loaded(tmp_path: Path) -> None:
    file = tmp_path / "data.npz"
    np.savez(file, x=np.array([{}, []], object), allow_pickle=True)
    assert "holds Python objects" in said(file)


def test_files_that_are_not_archives(tmp_path: Path) -> None:
    file = tmp_path / "data.npz"
    for content in (b"", b"a text", b"PK\x03\x04 not really"):
        file.write_bytes(content)
        assert "not an .npz file" in said(file)
    np.save(tmp_path / "one.npy", X)
    assert "a single array" in said(tmp_path / "one.npy")
    assert "cannot read" in said(tmp_path / "absent.npz")
    assert "cannot read" in said(tmp_path)


def test_an_archive_that_was_cut_off(tmp_path: Path) -> None:
    content = saved(tmp_path, x=X).read_bytes()
    file = tmp_path / "cut.npz"
    for length in (10, len(content) // 2, len(content) - 4, len(content) - 30):
        file.write_bytes(content[:length])
        assert "cut off" in said(file)


def test_inputs_with_different_numbers_of_samples(tmp_path: Path) -> None:
    inputs = [GraphInput(name=n, shape=(1, 2), axes=(0, 1)) for n in ("a", "b")]
    add = GraphNode(name="n", op=Add(), inputs=("a", "b"), output="y")
    net = graph_of("two", inputs, [GraphOutput(name="y", tensor="y")], [add])
    file = saved(tmp_path, a=np.ones((3, 2)), b=np.ones((4, 2)))
    assert said(file, net) == "inputs have different numbers of samples: {'a': 3, 'b': 4}"
    assert "no array for input 'b'" in said(saved(tmp_path, a=np.ones((3, 2)), x=X), net)


def test_damaged_bytes_never_crash(tmp_path: Path) -> None:
    content = saved(tmp_path, x=X, y=np.array([0, 1])).read_bytes()
    rng = np.random.default_rng(0)
    file = tmp_path / "damaged.npz"
    refused = 0
    for _ in range(200):
        damaged = bytearray(content)
        damaged[rng.integers(len(content))] = rng.integers(256)
        file.write_bytes(damaged)
        try:
            load_data(file, RGB)
        except DataError:
            refused += 1
    assert 0 < refused < 200
