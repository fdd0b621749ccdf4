"""Large data sets in parts: what is alive at once stays small whatever the user brings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SAMPLES_AT_ONCE = 64


def parts_of(inputs: Mapping[str, NDArray[Any]]) -> Iterator[dict[str, NDArray[Any]]]:
    """The samples in order, a few at a time."""
    samples = min(len(values) for values in inputs.values())
    for start in range(0, max(1, samples), _SAMPLES_AT_ONCE):
        yield {name: values[start : start + _SAMPLES_AT_ONCE] for name, values in inputs.items()}


def in_parts(
    run: Callable[[dict[str, NDArray[Any]]], dict[str, NDArray[Any]]],
    inputs: Mapping[str, NDArray[Any]],
) -> dict[str, NDArray[Any]]:
    """The results of `run` on every part, joined along the samples."""
    results = [run(part) for part in parts_of(inputs)]
    return {name: np.concatenate([result[name] for result in results]) for name in results[0]}
