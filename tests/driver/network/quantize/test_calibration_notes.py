"""What is strange about calibration data is told in a line; sound data need none."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from driver.network.quantize.calibration_notes import calibration_notes

RNG = np.random.default_rng(0)
SOUND = RNG.standard_normal((40, 3, 4, 4)).astype(np.float32)
LABELS = np.arange(40) % 10


def far() -> NDArray[np.float32]:
    values = SOUND.copy()
    values[3, 0, 0, 0] = 1e6
    return values


@pytest.mark.parametrize(
    ("x", "labels", "words"),
    [
        (SOUND[:1], None, "only 1 sample to calibrate"),
        (np.repeat(SOUND[:1], 20, axis=0), None, "all 20 samples to calibrate are the same one"),
        (SOUND, np.full(40, 7), "all samples to calibrate have the label 7"),
        (far(), LABELS, "input 'x' reaches 1e+06, but 99 % of its"),
    ],
)
def test_each_is_told_in_a_line(
    x: NDArray[np.float32], labels: NDArray[np.int64] | None, words: str
) -> None:
    (note,) = calibration_notes({"x": x}, labels)
    assert note.startswith(words)


@pytest.mark.parametrize("labels", [None, LABELS, RNG.uniform(0, 1, 40), np.ones((40, 4), int)])
def test_sound_data_need_no_word(labels: NDArray[np.float64] | None) -> None:
    assert not [*calibration_notes({"x": SOUND}, labels)]


def test_zeros_are_no_outliers() -> None:
    """A background of zeros, as most images of digits have."""
    x = np.where(RNG.uniform(0, 1, SOUND.shape) < 0.99, 0, SOUND).astype(np.float32)
    assert not [*calibration_notes({"x": x}, LABELS)]
