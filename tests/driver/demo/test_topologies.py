"""Networks made by code: the shapes of the papers, the same bytes for the same seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from driver.demo.topologies import TOPOLOGIES, images, topology
from driver.frontend import import_model
from driver.graph.float_run import run_float


def test_resnet18_is_the_published_one(tmp_path: Path) -> None:
    file = tmp_path / "resnet18.onnx"
    file.write_bytes(topology("resnet18"))
    graph = import_model(file)
    convolutions = [node for node in graph.nodes if type(node.op).__name__ == "Conv2d"]
    assert len(convolutions) == 20
    assert len(file.read_bytes()) == pytest.approx(4 * 11_699_112, rel=0.001)
    outputs = run_float(graph, {"image": images(1)})
    (chance,) = outputs.values()
    assert chance.shape == (1, 1000)
    assert 0.002 < chance.max() < 0.9


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_seed_gives_the_same_bytes(name: str) -> None:
    if name == "resnet18":
        pytest.skip("the same builder, and the largest file")
    assert topology(name) == topology(name)
    assert topology(name) != topology(name, seed=1)


def test_pictures_have_unit_spread() -> None:
    one, other = images(2), images(2)
    np.testing.assert_array_equal(one, other)
    assert one.shape == (2, 3, 224, 224)
    assert one.std() == pytest.approx(1, abs=1e-3)
