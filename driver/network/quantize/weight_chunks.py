"""Large weights some rows at a time: a whole layer in float64 would be gigabytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from numpy.typing import NDArray

MOST_ELEMENTS: Final = 4 << 20
"""32 MiB of float64; several such arrays are alive at once."""


CACHED_ELEMENTS: Final = 1 << 17
"""Half a mebibyte of float32: for many passes over the same rows."""


def bands(weight: NDArray[Any], block: int = 1, most: int | None = None) -> Iterator[slice]:
    """Rows of [Co, ...] that are worked on together, in order: whole blocks of channels.

    Args:
        most: elements of a band, if a block has no more.
    """
    rows = len(weight)
    fit = (most or MOST_ELEMENTS) // max(1, weight.size // max(1, rows))
    step = max(1, fit // block) * block
    for start in range(0, max(1, rows), step):
        yield slice(start, start + step)
