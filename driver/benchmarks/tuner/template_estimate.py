"""What the old flow's program of a point of its template is estimated to take.

    thread 0  |loads, products|                 |end    |store  |
    thread 1  |loads, products|                         |end    |store|
              `- beside each other             `- after all loads of the pair

From its schedule (TVM 0.14's vta/top/vta_conv2d.py) and the modules' cycles: operands are loaded
for every step of the reduction, rows and columns between those that are used with them; with two
virtual threads loads are beside products, and the end of one tile is beside the store of the other;
nothing is loaded while a tile ends. What is left out is small: padding, micro-ops, instructions.
"""

from __future__ import annotations

from math import prod
from typing import Final

from tilefarm.target import Target

from compile_worker.machines.vta.costs import costs_of
from driver.tune.autotvm.template import TemplateChoice, TemplateLayer

_END_OPERATIONS: Final = 3
"""A shift and two clips."""


def estimated_cycles(choice: TemplateChoice, layer: TemplateLayer, target: Target) -> int:
    """Cycles of the program that TVM makes of a valid configuration."""
    costs, taps = costs_of(target), prod(layer.kernel)
    tiles = (layer.co * prod(layer.output)) // (choice.tile_co * choice.tile_h * choice.tile_w)
    steps = tiles * (layer.ci // choice.tile_ci)
    window = _covered(layer, 0, choice.tile_h) * _covered(layer, 1, choice.tile_w)
    vectors = choice.tile_co * choice.tile_h * choice.tile_w
    image = costs.load.latency + costs.load.inp * choice.tile_ci * window
    weight = costs.load.latency + costs.load.wgt * choice.tile_ci * choice.tile_co * taps
    products = costs.start + vectors * choice.tile_ci * taps
    end = _END_OPERATIONS * (costs.start + costs.immediate * vectors)
    store = costs.store.start + costs.store.element * vectors
    loading = steps * (image + weight)
    computing = steps * products + tiles * (costs.start + vectors)
    if choice.slots == 1:
        return loading + computing + tiles * (end + store)
    return max(loading, computing) + tiles // 2 * (end + max(end, store) + store)


def _covered(layer: TemplateLayer, axis: int, outputs: int) -> int:
    """Rows (axis 0) or columns (axis 1) of the image under so many outputs, all in between too."""
    return min((outputs - 1) * layer.stride[axis] + layer.kernel[axis], layer.image[axis])
