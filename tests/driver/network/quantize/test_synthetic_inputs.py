"""Inputs that nobody gave: which networks get them, what they look like, what they are good for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kit.networks.random_networks import Builder, conv, window
from numpy.typing import NDArray

from driver.network.graph.float_run import run_float
from driver.network.graph.grid import Grid
from driver.network.graph.ir import Graph
from driver.network.integer.reference import run_integer
from driver.network.quantize.calibrate import calibrate
from driver.network.quantize.options import Quantization
from driver.network.quantize.quantizer import quantize
from driver.network.quantize.synthetic_inputs import made_up_inputs

BYTES = Grid(1 / 64, 100, "uint8")


def three_layers(shape: tuple[int, ...] = (1, 3, 32, 40), grid: Grid | None = BYTES) -> Graph:
    """Convolutions of an image, with ReLUs, whose weights have few levels."""
    rng = np.random.default_rng(5)
    b = Builder(shape)
    name = "x"
    for ci, co in ((shape[1], 16), (16, 16), (16, 8)):
        layer = conv(rng, ci, co, window(pad=1))
        layer.weight[:, 0, 1, 1] = 4  # a large weight takes the levels of the others
        name = b.put(replace(layer, lo=0.0), name)
    graph = b.graph(name)
    return replace(graph, inputs=(replace(graph.inputs[0], rounding=grid),))


def pictures(samples: int, shape: tuple[int, ...], grid: Grid) -> NDArray[np.float32]:
    """Rectangles that lie over one another, each of one colour."""
    rng = np.random.default_rng(9)
    found = np.empty((samples, *shape), np.float32)
    for picture in found:
        picture[:] = rng.uniform(size=(shape[0], 1, 1))
        for _ in range(40):
            top, left = rng.integers(0, shape[1]), rng.integers(0, shape[2])
            down, across = rng.integers(2, 20, 2)
            colour = rng.uniform(size=(shape[0], 1, 1))
            picture[:, top : top + down, left : left + across] = colour
    return grid.reals(grid.integers(grid.lo + (grid.hi - grid.lo) * found))


def test_they_are_within_what_the_model_says_and_always_the_same() -> None:
    graph = three_layers()
    (images,) = (made_up_inputs(graph) or {}).values()
    assert images.shape == (16, 3, 32, 40)
    assert BYTES.lo <= images.min() < images.max() <= BYTES.hi
    assert (BYTES.reals(BYTES.integers(images)) == images).all()
    again = made_up_inputs(three_layers())
    assert again is not None
    assert images.tobytes() == again["x"].tobytes()
    means = images.mean(axis=(1, 2, 3))
    assert means.std() > 0.1 * (BYTES.hi - BYTES.lo), "some are darker than others"


def test_neighbouring_pixels_are_alike() -> None:
    (images,) = (made_up_inputs(three_layers()) or {}).values()
    steps = np.square(np.diff(images, axis=3)).mean()
    assert steps < 0.5 * 2 * images.var(axis=(1, 2, 3)).mean()


def test_vectors_are_anywhere_between_the_ends() -> None:
    graph = three_layers()
    given = replace(graph.inputs[0], shape=(1, 640))
    (vectors,) = (made_up_inputs(replace(graph, inputs=(given,))) or {}).values()
    assert vectors.shape == (512, 640)
    assert (vectors.min(), vectors.max()) == pytest.approx((BYTES.lo, BYTES.hi))
    assert vectors.mean(axis=1) == pytest.approx((BYTES.lo + BYTES.hi) / 2, abs=0.3)


@pytest.mark.parametrize(
    ("shape", "grid"),
    [
        ((1, 3, 32, 40), None),
        ((1, 3, 49, 10), BYTES),
        ((1, 4, 32, 32), BYTES),
        ((1, 1, 64), BYTES),
        ((1, 3, 32, 32), Grid(1.0, 0, "int32")),
    ],
    ids=["no ends", "a spectrogram", "features", "a line", "counted"],
)
def test_other_networks_get_none(shape: tuple[int, ...], grid: Grid | None) -> None:
    b = Builder(shape)
    ranges = three_layers((1, 3, 32, 32)).ranges
    graph = b.graph("x")
    given = replace(graph.inputs[0], rounding=grid)
    assert made_up_inputs(replace(graph, inputs=(given,), ranges=ranges)) is None


def test_biases_are_better_for_pictures_that_were_not_seen() -> None:
    """No data: rounded weights move the means of what reads pictures less."""
    graph = three_layers()
    x = pictures(24, (3, 32, 40), BYTES)
    graph = replace(graph, ranges=calibrate(graph, x))
    floats = run_float(graph, {"x": x})["out0"]
    off = [
        np.square(
            (run_integer(quantize(graph, None, how), {"x": x})["out0"] - floats).mean(
                axis=(0, 2, 3)
            )
        )
        for how in (Quantization(correct_bias=False), Quantization())
    ]
    assert off[1].mean() < 0.3 * off[0].mean()
