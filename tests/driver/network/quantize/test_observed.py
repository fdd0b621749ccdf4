"""What a run for ranges tells besides: moments of what layers read, scores and answers.

It tells them of the centered network as well, without another run.
"""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from kit.networks.random_networks import Builder, conv, dense, window

from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Affine, Conv2d, Dense, Graph, Reshape, Softmax
from driver.network.quantize.calibrate import calibrate
from driver.network.quantize.channel_weights import Weighted
from driver.network.quantize.float_form import form_of
from driver.network.quantize.input_zero_points import input_zero_points
from driver.network.quantize.moments import moments
from driver.network.quantize.observed import Calibration, spread
from driver.network.quantize.options import Quantization
from driver.network.quantize.zero_points import centered, middles


def classifier() -> Graph:
    """Every kind of layer, with strides, padding and groups, and a softmax behind a reshape."""
    rng = np.random.default_rng(3)
    b = Builder((1, 4, 6, 6))
    name = b.put(replace(conv(rng, 4, 8, window(pad=1)), lo=0.0), "x")
    deep = conv(rng, 1, 8, window(stride=2, pad=1))
    name = b.put(replace(deep, groups=8), name)
    ones = np.ones(8, np.float32)
    name = b.put(Affine(weight=ones * 0.7, bias=ones * 0.3), name)
    name = b.put(dense(rng, 72, 5), b.put(Reshape(shape=(72,)), name))
    return b.graph(b.put(Reshape(shape=(5,)), b.put(Softmax(axis=1), name)))


def data(samples: int) -> Calibration:
    rng = np.random.default_rng(samples)
    return Calibration({"x": rng.normal(1, 2, (samples, 4, 6, 6)).astype(np.float32)})


@pytest.mark.parametrize("samples", [3, 200])
def test_moments_are_those_of_the_tensors(samples: int) -> None:
    graph, calibration = classifier(), data(samples)
    assert any(isinstance(node.op, Conv2d) and node.op.groups > 1 for node in graph.nodes)
    calibrate(graph, calibration)
    tensors: dict[str, list[np.ndarray]] = {}
    run_float(graph, calibration, observe=lambda name, x: tensors.setdefault(name, []).append(x))
    assert calibration.observed is not None
    layers = [node for node in graph.nodes if isinstance(node.op, Weighted)]
    assert len(layers) == 4
    for node in layers:
        assert isinstance(node.op, Weighted)
        wanted = moments(node.op, np.concatenate(tensors[node.inputs[0]]))
        found = calibration.observed.moments(node.op, node.inputs[0], 0.5)
        np.testing.assert_allclose(found.mean, 2 * wanted.mean, rtol=1e-4, atol=1e-5)
        variances = np.diagonal(wanted.covariance, axis1=1, axis2=2)
        if samples == 3:  # of more, `moments` leaves patches out
            np.testing.assert_allclose(found.covariance[..., 0], 4 * variances, rtol=1e-3)


def test_scores_are_what_is_before_the_softmax() -> None:
    graph, calibration = classifier(), data(200)
    calibrate(graph, calibration)
    seen = calibration.observed
    assert seen is not None
    np.testing.assert_array_equal(seen.places, spread(200, 16))
    logits = graph.nodes[-3].output
    assert [*seen.scores] == [logits]
    some = {"x": calibration["x"][seen.places]}
    kept: list[np.ndarray] = []
    answers = run_float(
        graph, some, observe=lambda name, x: kept.append(x) if name == logits else None
    )
    np.testing.assert_allclose(seen.scores[logits], np.concatenate(kept), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(seen.answers["out0"], answers["out0"], rtol=1e-3, atol=1e-5)


def test_plain_arrays_remember_nothing() -> None:
    graph, calibration = classifier(), data(8)
    assert calibrate(graph, dict(calibration)) == calibrate(graph, calibration)
    assert calibration.observed is not None
    assert (len(calibration), [*calibration]) == (1, ["x"])


def stack() -> Graph:
    """Layers that pad an image of 256 levels and what they make, and a dense one."""
    rng = np.random.default_rng(3)
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
    images = np.random.default_rng(4).integers(0, 256, (20, 3, 5, 5)).astype(np.float32)
    data = Calibration({"x": images})
    ranges = calibrate(graph, data)
    middle = middles(graph, ranges, inputs=input_zero_points(graph, ranges, data), copies=False)
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
    graph, counted = stack(), Mock(wraps=calibrate)
    monkeypatch.setattr("driver.network.quantize.ranges.calibrate", counted)
    images = np.random.default_rng(4).integers(0, 256, (20, 3, 5, 5)).astype(np.float32)
    form = form_of(graph, Calibration({"x": images}), Quantization())
    counted.assert_called_once()
    assert form.middle
    assert form.ranges.keys() >= form.graph.shapes.keys()
