"""Which samples the network was not calibrated on: only these say what it does in the field."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from tilefarm.digest import Digest

from driver.network.frontend.data import Dataset


def held_out(evaluation: Dataset, calibration: Dataset | None) -> NDArray[np.bool_]:
    """For each sample to evaluate whether none that calibrated has the same values."""
    if calibration is None:
        return np.ones(evaluation.samples, bool)
    seen = set(_digests(calibration))
    return np.array([digest not in seen for digest in _digests(evaluation)])


def _digests(data: Dataset) -> Iterator[Digest]:
    arrays = [data.inputs[name] for name in sorted(data.inputs)]
    for sample in range(data.samples):
        yield Digest.of(b"".join(np.ascontiguousarray(a[sample]).tobytes() for a in arrays))
