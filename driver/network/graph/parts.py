"""Large data sets in parts: what is alive at once stays small whatever the user brings."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driver.network.graph.ir import Shape

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
    *,
    threads: int = 1,
) -> dict[str, NDArray[Any]]:
    """The results of `run` on every part, joined along the samples; `heard` gets their sizes.

    Args:
        most: samples that may be worked on at a time.
        threads: that share them.
    """
    parts = list(parts_of(inputs, max(1, most // threads)))
    results = []
    for part, result in zip(parts, _results(run, parts, threads), strict=True):
        results.append(result)
        if heard is not None:
            heard(len(next(iter(part.values()))))
    return {name: np.concatenate([result[name] for result in results]) for name in results[0]}


def _results(
    run: Callable[[Arrays], Arrays], parts: Sequence[Arrays], threads: int
) -> Iterator[Arrays]:
    """In the order of the parts. The first that fails ends it, and those not yet begun are not."""
    if threads == 1:
        yield from map(run, parts)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        # Each in a context of its own: numpy keeps there which errors count.
        futures = [pool.submit(copy_context().run, run, part) for part in parts]
        for future in futures:
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def threads_for(most: int) -> int:
    """How many threads are worth their while where so many samples may be worked on at a time.

    Every core has one where tensors are large, because BLAS has none of its own (see
    `tilefarm.quiet`); small ones take less time than Python, which works in one thread.
    """
    return min(os.cpu_count() or 1, most) if most < _SAMPLES_AT_ONCE else 1
