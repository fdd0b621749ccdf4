"""Images read at places that data name, against ONNX's reference evaluator."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.networks.onnx_models import model_on, node, saved
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from tilefarm.errors import ModelError

from driver.network import import_model
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Take

from .importing import answers_as_onnx

RNG = np.random.default_rng(8)
IMAGE = RNG.standard_normal((1, 2, 4, 3)).astype(np.float32)
GRID = RNG.uniform(-1.4, 1.4, (1, 3, 2, 2)).astype(np.float32)


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize(
    ("mode", "padding"),
    [
        *itertools.product(["nearest", "linear"], ["zeros", "border", "reflection"]),
        *(("cubic", "zeros"), ("cubic", "reflection")),
    ],
)
def test_grid_sample(mode: str, padding: str, corners: int, tmp_path: Path) -> None:
    given = {"x": IMAGE, "g": GRID}
    sample = node(
        "GridSample", ["x", "g"], "y", mode=mode, padding_mode=padding, align_corners=corners
    )
    graph = answers_as_onnx(model_on(given, [sample]), given, tmp_path)
    taps = {"nearest": 1, "linear": 4, "cubic": 16}[mode]
    assert 0 < sum(isinstance(each.op, Take) for each in graph.nodes) <= taps


def test_cubic_weights_at_a_border_are_those_of_an_image_that_goes_on(tmp_path: Path) -> None:
    """Here PyTorch and ONNX Runtime agree, and ONNX's evaluator differs from both."""
    more = 4
    wide = np.pad(IMAGE, [(0, 0), (0, 0), (more, more), (more, more)], mode="edge")
    inner, outer = (np.array(each.shape[:1:-1], np.float32) - 1 for each in (IMAGE, wide))
    wide_grid = ((GRID + 1) * inner + 2 * more) / outer - 1
    zeros = node("GridSample", ["x", "g"], "y", mode="cubic", align_corners=1)
    evaluator = ReferenceEvaluator(model_on({"x": wide, "g": wide_grid}, [zeros]))
    wanted: Any = evaluator.run(None, {"x": wide, "g": wide_grid})
    border = node(
        "GridSample", ["x", "g"], "y", mode="cubic", padding_mode="border", align_corners=1
    )
    graph = import_model(saved(model_on({"x": IMAGE, "g": GRID}, [border]), tmp_path))
    inputs = {each.name: {"x": IMAGE, "g": GRID}[each.name] for each in graph.inputs}
    held = {each.name: inputs[each.name].transpose(each.axes) for each in graph.inputs}
    (found,) = run_float(graph, held).values()
    np.testing.assert_allclose(found.reshape(wanted[0].shape), wanted[0], rtol=1e-4, atol=1e-5)


def test_a_constant_grid_is_a_move(tmp_path: Path) -> None:
    sample = node("GridSample", ["x", "g"], "y")
    graph = answers_as_onnx(model_on({"x": IMAGE}, [sample], {"g": GRID}), {"x": IMAGE}, tmp_path)
    assert not any(isinstance(each.op, Take) for each in graph.nodes)


def test_every_sample_has_a_grid_of_its_own(tmp_path: Path) -> None:
    image, grid = (np.concatenate([each, each[:, ::-1]]) for each in (IMAGE, GRID))
    given = {"x": image, "g": grid}
    answers_as_onnx(model_on(given, [node("GridSample", ["x", "g"], "y")]), given, tmp_path)


def test_an_image_is_moved_by_a_matrix(tmp_path: Path) -> None:
    given: dict[str, NDArray[np.float32]] = {
        "x": IMAGE,
        "t": np.array([[[0.9, 0.2, 0.1], [-0.2, 0.8, 0.0]]], np.float32),
    }
    nodes = [node("AffineGrid", ["t", "s"], "g"), node("GridSample", ["x", "g"], "y")]
    made = model_on(given, nodes, {"s": np.array(IMAGE.shape)})
    answers_as_onnx(made, given, tmp_path)


@pytest.mark.parametrize("size", [[1, 2, 0, 3], [1, 2, 1 << 30, 1 << 30], [1, 2]])
def test_grids_of_no_image(size: list[int], tmp_path: Path) -> None:
    given = {"t": np.zeros((1, 2, 3), np.float32)}
    made = model_on(given, [node("AffineGrid", ["t", "s"], "y")], {"s": np.array(size)})
    with pytest.raises(ModelError, match=r"its size .* of an image|too many"):
        import_model(saved(made, tmp_path))


def test_what_is_read_has_channels(tmp_path: Path) -> None:
    given = {"x": IMAGE[0, 0], "g": GRID}
    with pytest.raises(ModelError, match=r"input \[4, 3\]; only \[N, C, ...\] is supported"):
        import_model(saved(model_on(given, [node("GridSample", ["x", "g"], "y")]), tmp_path))


def test_a_grid_that_does_not_fit(tmp_path: Path) -> None:
    given = {"x": IMAGE, "g": GRID[..., :1]}
    made = model_on(given, [node("GridSample", ["x", "g"], "y")])
    with pytest.raises(ModelError, match=r"grid \[1, 3, 2, 1\] does not fit \[1, 2, 4, 3\]"):
        import_model(saved(made, tmp_path))
