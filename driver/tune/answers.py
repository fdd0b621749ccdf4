"""Answers of a network to samples, computed as far as somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.network import Arrays

Hear = Callable[[int], None]


class Answers:
    """Outputs by name [samples, ...]; what was computed once is kept."""

    def __init__(self, run: Callable[[Arrays, Hear | None], Arrays], inputs: Arrays) -> None:
        self._run = run
        self._inputs = inputs
        self._known: Arrays = {}
        self._done = 0

    def first(self, samples: int, heard: Hear | None = None) -> dict[str, NDArray[Any]]:
        """Those of so many samples from the start; `heard` gets numbers of samples that are done.

        Samples that were computed before count at once.
        """
        if heard is not None and self._done:
            heard(min(self._done, samples))
        if samples > self._done:
            rest = {name: each[self._done : samples] for name, each in self._inputs.items()}
            self._known = _joined(self._known, self._run(rest, heard))
            self._done = samples
        return {name: values[:samples] for name, values in self._known.items()}


def _joined(first: Arrays, more: Arrays) -> Arrays:
    """Both behind one another; nothing is copied where there is no first."""
    if not first:
        return more
    return {name: np.concatenate([first[name], values]) for name, values in more.items()}
