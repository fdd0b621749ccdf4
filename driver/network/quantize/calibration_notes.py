"""What is strange about calibration data: they are used as they are, and the user is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.plural import plural

from driver.network.graph.ir import FloatArray

_FEW: Final = 8
"""Samples: with fewer, ranges are those of what these few happen to hold."""
_USUAL_PERCENT: Final = 99.0
_FAR: Final = 100.0
"""Times what nearly all values are below: seven bits, so int8 has a step or two for these."""


def calibration_notes(
    inputs: Mapping[str, FloatArray], labels: NDArray[Any] | None
) -> Iterator[str]:
    """A line for each thing that is strange about the samples [samples, ...] by input."""
    samples = min(len(values) for values in inputs.values())
    if samples < _FEW:
        yield (
            f"only {plural(samples, 'sample')} to calibrate: results of others may be clipped;"
            " a few dozen are better"
        )
    if samples > 1 and all((values == values[:1]).all() for values in inputs.values()):
        yield f"all {samples} samples to calibrate are the same one"
    whole = labels is not None and labels.dtype.kind in "iu" and labels.size == len(labels)
    if labels is not None and whole and samples > 1 and (labels == labels.reshape(-1)[0]).all():
        yield (
            f"all samples to calibrate have the label {labels.reshape(-1)[0]}: what other classes"
            " need is not known"
        )
    for name, values in inputs.items():
        sizes = np.abs(values[values != 0])
        usual = float(np.percentile(sizes, _USUAL_PERCENT)) if sizes.size else 0.0
        if usual and float(sizes.max()) > _FAR * usual:
            yield (
                f"input {name!r} reaches {float(sizes.max()):.3g}, but {_USUAL_PERCENT:g} % of its"
                f" values that are not zero are below {usual:.3g}, for which int8 has hardly a"
                " step; --calibration percentile clips what is rare"
            )
