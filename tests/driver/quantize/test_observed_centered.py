"""What a run of a float network tells is that of the centered one, without another run."""

from __future__ import annotations

import numpy as np
import pytest
from kit.networks import Builder, conv, dense, window
from numpy.random import default_rng

from driver.graph.ir import Conv2d, Dense, Graph, Reshape
from driver.quantize.calibrate import calibrate
from driver.quantize.centering import centered, input_middles, middles
from driver.quantize.channel_weights import Weighted
from driver.quantize.observed import Calibration
from driver.quantize.options import Quantization
from driver.quantize.quantizer import form_of


def stack() -> Graph:
    """Layers that pad an image of 256 levels and what they make, and a dense one."""
    rng = default_rng(3)
    b = Builder((1, 3, 5, 5))
    first: Conv2d = conv(rng, 3, 16, window(pad=1))
    name = b.put(Conv2d(weight=first.weight, bias=first.bias, window=first.window, lo=0.0), "x")
    second: Conv2d = conv(rng, 16, 16, window(pad=1), groups=16)
    name = b.put(
        Conv2d(weight=second.weight, bias=second.bias, window=second.window, groups=16, lo=0.0),
        name,
    )
    last: Dense = dense(rng, 400, 6)
    return b.graph(b.put(last, b.put(Reshape(shape=(400,)), name)))


def test_means_and_variances_of_the_centered_network() -> None:
    graph = stack()
    images = default_rng(4).integers(0, 256, (20, 3, 5, 5)).astype(np.float32)
    data = Calibration({"x": images})
    ranges = calibrate(graph, data)
    middle = middles(graph, ranges, inputs=input_middles(graph, ranges, data), copies=False)
    assert {"x", "t0", "t1"} <= middle.keys()
    made = centered(graph, middle)
    assert data.observed is not None
    told = data.observed.centered(made, {name: each.real for name, each in middle.items()})
    calibrate(made, data)
    seen = data.observed
    layers = [node for node in made.nodes if isinstance(node.op, Weighted)]
    assert len(layers) == 3
    for node in layers:
        assert isinstance(node.op, Weighted)
        wanted, found = (each.moments(node.op, node.inputs[0], 0.5) for each in (seen, told))
        assert found.mean == pytest.approx(wanted.mean, rel=1e-3, abs=1e-2)
        assert found.covariance == pytest.approx(wanted.covariance, rel=1e-2, abs=0.5)


def test_ranges_need_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, runs = stack(), list[str]()

    def counted(of: Graph, *args: object) -> dict[str, float]:
        runs.append(of.name)
        return calibrate(of, *args)  # type: ignore[arg-type]

    monkeypatch.setattr("driver.quantize.ranges.calibrate", counted)
    images = default_rng(4).integers(0, 256, (20, 3, 5, 5)).astype(np.float32)
    form = form_of(graph, Calibration({"x": images}), Quantization())
    assert len(runs) == 1
    assert form.middle
    assert form.ranges.keys() >= form.graph.shapes.keys()
