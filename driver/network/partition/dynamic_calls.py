"""Layers on a grid that data decide as calls of a processor's kernels: those of any other layer.

Their biases and scales are made while the network runs:

    sum of (x - zx) * w + bias  =  sum of x * w + (bias - zx * sum of w)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from tilefarm.dtype import DType

from driver.network.graph.ir import Shape
from driver.network.integer.qlinear import QLinearConv2d, QLinearDense
from driver.network.partition.assembly import Assembly, Constant
from driver.network.partition.qlinear_weights import centered_weights, in_blocks

_GRID: Final = (1, 2)
"""Scale and zero point of one sample, the only one under a range of its own."""
_SCALE: Final = (1, 1)


def dynamic_operands(
    made: Assembly,
    name: str,
    layer: QLinearConv2d | QLinearDense,
    grid: str,
    constants: Mapping[str, Constant],
) -> dict[str, tuple[str, Shape]]:
    """Tensors for what are constants elsewhere, after the steps that make those of the grid."""
    shape = constants["scale"].values.shape
    computed = {
        "bias": _bias(made, name, layer, grid, constants["bias"]),
        "scale": _scale(made, name, grid, constants["scale"]),
    }
    return {
        parameter: (computed[parameter], shape)
        if parameter in computed
        else (made.constant(each), each.values.shape)
        for parameter, each in constants.items()
    }


def _bias(
    made: Assembly, name: str, layer: QLinearConv2d | QLinearDense, grid: str, bias: Constant
) -> str:
    """Biases that make up for the zero point of the data."""
    weight = centered_weights(layer).reshape(len(layer.weight), -1)
    taps = in_blocks(weight.sum(axis=1, dtype=np.int32), len(weight))
    result = made.fresh(f"{name}.own_bias")
    made.call(
        result,
        "dynamic_bias",
        {"grid": (grid, _GRID)},
        {"taps": Constant(f"{name}.taps", taps), "bias": bias},
        {},
        result=result,
        shape=taps.shape,
        dtype=DType.INT32,
        why="makes up for the zero point that the data have",
    )
    return result


def _scale(made: Assembly, name: str, grid: str, ours: Constant) -> str:
    """The scales of the sums: those of the weights times that of the data."""
    scale = f"{grid}.scale"
    if scale not in made.tensors:
        made.declare(scale, _SCALE, DType.FLOAT32, "view", parent=grid)
    result = made.fresh(f"{name}.own_scale")
    made.call(
        result,
        "real_zip",
        {"a": (scale, _SCALE)},
        {"b": ours},
        {"function": "mul"},
        result=result,
        shape=ours.values.shape,
        dtype=DType.FLOAT32,
        why="multiplies by the scale that the data have",
    )
    return result
