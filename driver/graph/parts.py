"""Large data sets in parts: what is alive at once stays small whatever the user brings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driver.graph.ir import Shape

Arrays: TypeAlias = Mapping[str, NDArray[Any]]

_SAMPLES_AT_ONCE: Final = 64
_TENSOR_ELEMENTS: Final = 8 << 20
"""Of one tensor of all samples at once, where that is possible: 32 MiB of float32."""


def samples_at_once(shapes: Iterable[Shape]) -> int:
    """How many samples to run together through a network with tensors of these shapes."""
    largest = max((math.prod(shape[1:]) for shape in shapes), default=1)
    return max(1, min(_SAMPLES_AT_ONCE, _TENSOR_ELEMENTS // max(1, largest)))


def parts_of(inputs: Arrays, most: int) -> Iterator[dict[str, NDArray[Any]]]:
    """The samples in order, at most so many at a time."""
    samples = min(len(values) for values in inputs.values())
    for start in range(0, max(1, samples), most):
        yield {name: values[start : start + most] for name, values in inputs.items()}


def in_parts(
    run: Callable[[Arrays], Arrays],
    inputs: Arrays,
    most: int,
    heard: Callable[[int], None] | None = None,
) -> dict[str, NDArray[Any]]:
    """The results of `run` on every part, joined along the samples; `heard` gets their sizes."""
    results = []
    for part in parts_of(inputs, most):
        results.append(run(part))
        if heard is not None:
            heard(len(next(iter(part.values()))))
    return {name: np.concatenate([result[name] for result in results]) for name in results[0]}
