"""How far an integer network is from its float network, tensor by tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from driver.network import (
    FloatArray,
    Graph,
    Noise,
    QuantGraph,
    noise_between,
    run_float,
    run_integer,
)

_SAMPLES_AT_ONCE: Final = 8
"""Every tensor of so many samples is held at once."""


def noise_of(
    graph: Graph, quantized: QuantGraph, inputs: Mapping[str, FloatArray]
) -> dict[str, Noise]:
    """The noise of every tensor that both networks have, by name, over samples [samples, ...].

    As in `driver.network.accuracy.noise_sources`, none of a network in ONNX's own arithmetic.
    """
    if quantized.is_in_onnx_arithmetic:
        return {}
    total: dict[str, Noise] = {}
    samples = len(next(iter(inputs.values())))
    for start in range(0, samples, _SAMPLES_AT_ONCE):
        part = {name: values[start : start + _SAMPLES_AT_ONCE] for name, values in inputs.items()}
        for name, each in _noise_of_part(graph, quantized, part).items():
            total[name] = total.get(name, Noise()) + each
    return total


def _noise_of_part(
    graph: Graph, quantized: QuantGraph, inputs: Mapping[str, FloatArray]
) -> dict[str, Noise]:
    integers = run_integer(quantized, inputs, keep=True)
    found: dict[str, Noise] = {}

    def compare(name: str, values: FloatArray) -> None:
        if name in quantized.tensors and name in integers and name not in inputs:
            found[name] = noise_between(
                values, _reals(integers[name], quantized.tensors[name].scale)
            )

    run_float(graph, inputs, observe=compare)
    return found


def _reals(values: NDArray[Any], scale: float | None) -> NDArray[Any]:
    return values if scale is None else values.astype(np.float64) * scale
