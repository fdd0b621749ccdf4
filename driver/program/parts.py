"""Samples in parts, so that memory stays small, and in whole batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Arrays: TypeAlias = Mapping[str, NDArray[Any]]

_SAMPLES_AT_ONCE: Final = 64


def in_parts(execute: Callable[[Arrays], Arrays], inputs: Arrays) -> dict[str, NDArray[Any]]:
    """The outputs of `execute` for all samples of `inputs` [samples, ...], a part at a time."""
    samples = len(next(iter(inputs.values())))
    parts = [
        execute({name: values[at : at + _SAMPLES_AT_ONCE] for name, values in inputs.items()})
        for at in range(0, samples, _SAMPLES_AT_ONCE)
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


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
