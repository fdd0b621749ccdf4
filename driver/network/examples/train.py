"""Trains the digit classifier and writes the model and its arrays.

Run as `python -m driver.network.examples.train`.
The images are scikit-learn's copy of the UCI "Optical Recognition of Handwritten Digits" test set:
1797 of 8x8 pixels within 0..16. Takes about a minute; on one machine the same seed gives the same
files.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL, DEMO_TEST, FOLDER
from driver.network.examples.classifier import fresh_parameters, loss_and_gradients, scores
from driver.network.examples.export import write_onnx
from driver.network.graph.ir import FloatArray

BRIGHTEST: Final = 16.0
TEST_SAMPLES: Final = 500
CALIBRATION_SAMPLES: Final = 128


@dataclass(frozen=True, slots=True, eq=False)
class Digits:
    """Images [N, 1, 8, 8] of raw pixels and their digits [N]."""

    images: FloatArray
    labels: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRecipe:
    """How to train; `decay` shrinks weights in proportion to the step."""

    epochs: int = 40
    batch: int = 64
    step: float = 3e-3
    decay: float = 2e-2
    seed: int = 7


def split_digits(seed: int) -> tuple[Digits, Digits]:
    """Training and test images, chosen by `seed`."""
    from sklearn.datasets import load_digits  # a training dependency only

    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    images = digits.images[order, None].astype(np.float32)
    labels = digits.target[order].astype(np.int64)
    cut = len(order) - TEST_SAMPLES
    return Digits(images[:cut], labels[:cut]), Digits(images[cut:], labels[cut:])


def train(
    digits: Digits, recipe: TrainingRecipe, say: Callable[[str], None] = print
) -> dict[str, FloatArray]:
    """Parameters after Adam (Kingma and Ba, 2015), a cosine step and random sideways shifts."""
    rng = np.random.default_rng(recipe.seed)
    parameters = fresh_parameters(rng)
    first = {name: np.zeros_like(values) for name, values in parameters.items()}
    second = {name: np.zeros_like(values) for name, values in parameters.items()}
    total = recipe.epochs * -(-len(digits.labels) // recipe.batch)
    done = 0
    for epoch in range(recipe.epochs):
        losses = []
        for part in _batches(len(digits.labels), recipe.batch, rng):
            done += 1
            x = _shifted(digits.images[part] / np.float32(BRIGHTEST), rng)
            loss, grads = loss_and_gradients(x, digits.labels[part], parameters)
            losses.append(loss)
            step = recipe.step * 0.5 * (1 + np.cos(np.pi * done / total))
            for name, grad in grads.items():
                first[name] += 0.1 * (grad - first[name])
                second[name] += 0.001 * (grad * grad - second[name])
                mean = first[name] / (1 - 0.9**done)
                spread = np.sqrt(second[name] / (1 - 0.999**done)) + 1e-8
                parameters[name] -= np.float32(step) * (
                    mean / spread + np.float32(recipe.decay) * parameters[name]
                )
        say(f"epoch {epoch + 1}/{recipe.epochs}  loss {np.mean(losses):.4f}")
    return parameters


def main() -> None:
    """Trains, says the accuracy on images that training did not see, and writes the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the three files")
    parser.add_argument("--epochs", type=int, default=TrainingRecipe().epochs)
    parser.add_argument("--seed", type=int, default=TrainingRecipe().seed)
    args = parser.parse_args()
    training, test = split_digits(args.seed)
    parameters = train(training, TrainingRecipe(epochs=args.epochs, seed=args.seed))
    guesses = scores(test.images / np.float32(BRIGHTEST), parameters).argmax(axis=1)
    print(f"accuracy {(guesses == test.labels).mean():.1%} on {len(guesses)} unseen images")
    args.out.mkdir(parents=True, exist_ok=True)
    write_onnx(parameters, args.out / DEMO_MODEL.name, pixel_scale=1 / BRIGHTEST)
    calibration = training.images[:CALIBRATION_SAMPLES].astype(np.uint8)
    np.savez_compressed(args.out / DEMO_CALIBRATION.name, x=calibration)
    np.savez_compressed(args.out / DEMO_TEST.name, x=test.images.astype(np.uint8), y=test.labels)


def _batches(samples: int, batch: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    order = rng.permutation(samples)
    for start in range(0, samples, batch):
        yield order[start : start + batch]


def _shifted(x: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Each image moved sideways by at most one pixel: digits fill all eight rows already."""
    wide = np.pad(x, ((0, 0), (0, 0), (0, 0), (1, 1)))
    columns = rng.integers(0, 3, len(x))[:, None] + np.arange(x.shape[3])
    return np.take_along_axis(wide, columns[:, None, None, :], axis=3)


if __name__ == "__main__":
    main()
