"""Weights that were whole numbers before: the scale of the results at which they are again.

The weights of a model that was quantized before are multiples of one number u. With the input scale
si they keep their values where the results have the scale si * u * 2^k; at another one they are
rounded a second time. That scale may be up to twice the one that is wanted, which makes the results
coarser, so the one is taken that is expected to add less noise. Results that no layer reads keep
the scale that is wanted: classes that differ by less than a step of it would be equal.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from driver.network.graph.ir import FloatArray, Graph, Layer
from driver.network.quantize.power_of_two_requantization import LayerParameters
from driver.network.quantize.weight_chunks import bands

_MOST_MULTIPLE: Final = 255
_MOST_SMALLEST: Final = 16
"""What multiple of u the smallest weight may be."""
_WHOLE: Final = 1e-3
"""How far from a whole number a multiple may be, in float32 weights."""
_SPREAD: Final = 128 / 3
"""The root mean square of int8 activations that is assumed where nothing is known of them."""


def read_by_layers(graph: Graph) -> frozenset[str]:
    """The tensors on which a layer depends: others decide between classes and stay fine."""
    found: set[str] = set()
    for node in reversed(graph.nodes):
        if isinstance(node.op, Layer) or node.output in found:
            found.update(node.inputs)
    return frozenset(found)


def exact_out_scales(weight: FloatArray, in_scale: float, least: float) -> tuple[float, ...]:
    """The smallest scale of at least `least` at which the weights stay as they are, if any."""
    unit = unit_of(weight)
    if unit is None:
        return ()
    finest = in_scale * unit
    shift = math.ceil(math.log2(least / finest) - _WHOLE)
    return (max(finest * 2.0**shift, least),) if shift >= 0 else ()


def unit_of(weight: FloatArray) -> float | None:
    """The number of which all weights are whole multiples of at most 255; None without one."""
    sizes = np.unique(np.abs(weight.reshape(-1)[: 1 << 12]))
    if sizes.size > _MOST_MULTIPLE + 1:
        return None
    sizes = np.unique(np.abs(weight)).astype(np.float64)
    sizes = sizes[sizes > 0]
    if not 0 < sizes.size <= _MOST_MULTIPLE:
        return None
    for smallest in range(1, _MOST_SMALLEST + 1):
        multiples = sizes / (sizes[0] / smallest)
        whole = np.rint(multiples)
        if whole[-1] <= _MOST_MULTIPLE and np.abs(multiples - whole).max() < _WHOLE:
            return float((sizes @ whole) / (whole @ whole))
    return None


def added_noise(
    weight: FloatArray, layer: LayerParameters, *, in_scale: float, out_scale: float
) -> float:
    """The mean square that rounding weights and results is expected to add to the results."""
    gain = np.exp2(-layer.shift.astype(np.float64)) * (out_scale / in_scale)
    whole, flat = (each.reshape(len(gain), -1) for each in (layer.weight, weight))
    wrong = np.concatenate(
        [
            np.square(whole[band] * gain[band, None] - flat[band]).sum(axis=1)
            for band in bands(weight)
        ]
    ).mean()
    return float(wrong * (in_scale * _SPREAD) ** 2 + out_scale**2 / 12)
