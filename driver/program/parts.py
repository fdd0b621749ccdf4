"""Samples in whole batches, a few of them at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.network import Arrays


def whole_batches(
    inputs: Arrays, batch: int, most: int
) -> Iterator[dict[str, NDArray[np.float32]]]:
    """Parts of about `most` samples; the last sample is repeated until its batch is full."""
    samples = len(next(iter(inputs.values())))
    size = max(1, most // batch) * batch
    for start in range(0, samples, size):
        yield {name: filled(values[start : start + size], batch) for name, values in inputs.items()}


def filled(values: NDArray[Any], batch: int) -> NDArray[np.float32]:
    """The samples as float32, the last one repeated until they fill whole batches."""
    missing = -len(values) % batch
    if missing:
        values = np.concatenate([values, np.repeat(values[-1:], missing, axis=0)])
    return np.ascontiguousarray(values, np.float32)
