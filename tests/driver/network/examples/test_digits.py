"""The shipped example: its gradients, its files, and what is left of its accuracy in integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driver.network import import_model, load_data
from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL, DEMO_TEST
from driver.network.examples.classifier import SHAPES, fresh_parameters, loss_and_gradients, scores
from driver.network.examples.export import write_onnx
from driver.network.examples.train import BRIGHTEST, Digits, TrainingRecipe, train
from driver.network.graph.float_run import run_float
from driver.network.integer.reference import run_integer
from driver.network.quantize.quantizer import quantize


def some_digits(count: int) -> Digits:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 17, (count, 1, 8, 8)).astype(np.float32)
    return Digits(images, rng.integers(0, 10, count))


@pytest.mark.parametrize("name", [f"{layer}.{kind}" for layer in SHAPES for kind in "wb"])
def test_gradients_are_slopes(name: str) -> None:
    rng = np.random.default_rng(1)
    p: dict[str, Any] = {k: v.astype(np.float64) for k, v in fresh_parameters(rng).items()}
    digits = some_digits(4)
    x = digits.images / BRIGHTEST
    _, grads = loss_and_gradients(x, digits.labels, p)
    place = tuple(rng.integers(extent) for extent in p[name].shape)
    losses = []
    for step in (1e-5, -1e-5):
        moved = {**p, name: p[name].copy()}
        moved[name][place] += step
        losses.append(loss_and_gradients(x, digits.labels, moved)[0])
    slope = (losses[0] - losses[1]) / 2e-5
    assert grads[name][place] == pytest.approx(slope, rel=1e-2, abs=1e-6)


@pytest.mark.slow
def test_training_lowers_the_loss_and_is_the_same_every_time() -> None:
    digits = some_digits(32)
    said: list[str] = []
    recipe = TrainingRecipe(epochs=4, batch=16, seed=3)
    one, two = (train(digits, recipe, said.append) for _ in range(2))
    assert all((one[name] == two[name]).all() for name in one)
    losses = [float(line.split()[-1]) for line in said[:4]]
    assert losses[-1] < losses[0]


def test_the_exported_model_is_the_trained_one(tmp_path: Path) -> None:
    parameters = fresh_parameters(np.random.default_rng(2))
    write_onnx(parameters, tmp_path / "fresh.onnx", pixel_scale=1 / BRIGHTEST)
    images = some_digits(5).images
    logits = scores(images / np.float32(BRIGHTEST), parameters)
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    got = run_float(import_model(tmp_path / "fresh.onnx"), {"image": images})["probability"]
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-5)


def test_the_shipped_files_keep_their_accuracy_in_integers() -> None:
    graph = import_model(DEMO_MODEL)
    calibration, test = load_data(DEMO_CALIBRATION, graph), load_data(DEMO_TEST, graph)
    quantized = quantize(graph, calibration.inputs)
    in_float, in_integers = (
        int((scores["probability"].argmax(axis=1) == test.labels).sum())
        for scores in (run_float(graph, test.inputs), run_integer(quantized, test.inputs))
    )
    assert test.samples == 500
    assert in_float >= 0.97 * test.samples
    assert in_integers >= in_float - 0.01 * test.samples
    assert sum(file.stat().st_size for file in (DEMO_MODEL, DEMO_CALIBRATION, DEMO_TEST)) < 1 << 20
