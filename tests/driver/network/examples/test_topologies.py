"""Networks made by code: the shapes of the papers, the same bytes for the same seed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest

from driver.network import import_model
from driver.network.examples.topologies import (
    SMALL_TOPOLOGIES,
    TOPOLOGIES,
    random_images,
    write_topology,
)
from driver.network.graph.float_run import run_float

FAST = [name for name in TOPOLOGIES if name != "vgg19"]
"""The others have weights of half a gigabyte."""


def drawn(name: str, folder: Path, *, seed: int = 0) -> Path:
    file = folder / f"{name}-{seed}.onnx"
    write_topology(name, file, seed=seed)
    return file


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a network with seed 0, drawn once."""
    return cache(lambda name: drawn(name, tmp_path_factory.mktemp("first")))


@pytest.mark.parametrize(
    ("name", "layers", "weights"),
    [
        ("resnet18", {"Conv2d": 20, "Dense": 1}, 11_699_112),
        ("mobilenet_v2", {"Conv2d": 52, "Dense": 1}, 3_538_984),
        pytest.param(*("resnet50", {"Conv2d": 53, "Dense": 1}, 25_610_152), marks=pytest.mark.slow),
        pytest.param(
            *("densenet121", {"Conv2d": 120, "Dense": 1}, 8_062_504), marks=pytest.mark.slow
        ),
        ("inception_v1", {"Conv2d": 57 + 2, "Dense": 1}, 6_998_552),
    ],
)
def test_they_are_the_published_ones(
    name: str, layers: dict[str, int], weights: int, first: Callable[[str], Path]
) -> None:
    """Numbers of weights as published. LRN sums over channels by a convolution."""
    file = first(name)
    onnx.checker.check_model(file, full_check=True)
    graph = import_model(file)
    found = Counter(type(node.op).__name__ for node in graph.nodes)
    assert {kind: found[kind] for kind in layers} == layers
    assert file.stat().st_size == pytest.approx(4 * weights, rel=0.003)
    (chance,) = run_float(graph, {"image": random_images(1)}).values()
    assert chance.shape == (1, 1000)
    assert 0.002 < chance.max() < 0.95


@pytest.mark.slow
def test_vgg19_is_the_published_one(tmp_path: Path) -> None:
    file = drawn("vgg19", tmp_path)
    onnx.checker.check_model(file, full_check=True)
    assert file.stat().st_size == pytest.approx(4 * 143_667_240, rel=0.0001)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in SMALL_TOPOLOGIES else pytest.mark.slow) for n in FAST],
)
def test_a_seed_gives_the_same_bytes(
    name: str, tmp_path: Path, first: Callable[[str], Path]
) -> None:
    again, other = (drawn(name, tmp_path, seed=seed).read_bytes() for seed in (0, 1))
    assert first(name).read_bytes() == again
    assert other != again


def test_the_bytes_are_those_that_protobuf_would_write(first: Callable[[str], Path]) -> None:
    content = first("squeezenet").read_bytes()
    model = onnx.ModelProto.FromString(content)
    assert model.SerializeToString(deterministic=True) == content
    digest = "e870d0f721280e1e475373035d180e27ca2f17fd03898a727e85782bf9d58607"
    assert hashlib.sha256(content).hexdigest() == digest


def test_pictures_have_unit_spread() -> None:
    one, other = random_images(2), random_images(2)
    np.testing.assert_array_equal(one, other)
    assert one.shape == (2, 3, 224, 224)
    assert one.std() == pytest.approx(1, abs=1e-3)
