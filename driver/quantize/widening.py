"""Which layers get weights of 16 bits: the cheapest ones that take enough of the noise away.

Layers are sorted by the noise that their 8-bit weights add and by what twice the work costs. One,
two, four and so on of them are tried until few enough answers change; bisection finds the fewest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from driver.accuracy.noise_sources import noise_sources
from driver.graph.ir import Graph
from driver.graph.parts import Arrays
from driver.integer.qir import QConv2d, QDense, QuantGraph
from driver.quantize.wide_weights import has_no_wide_form

_CROSSING: Final = 0.01
"""Of the network's multiply-accumulates: what a layer costs besides its own."""
_AS_GOOD: Final = 1.25
"""By how much more answers may change than with all layers wide, to be as good."""
_LEAST_SHARE: Final = 1e-3
"""Of all noise that weights add, from which on a layer is worth trying."""


def layers_by_gain(graph: Graph, quantized: QuantGraph, few: Arrays) -> list[str]:
    """The layers whose weights may have 16 bits, those first that are worth most.

    Worth is the share of the noise that weights add, by what twice the work costs.

    Args:
        graph: the float network that `quantized` stands for, see
            `driver.quantize.quantizer.float_form`.
        few: some samples.
    """
    able = {node.output: node.name for node in graph.nodes if not has_no_wide_form(node.op)}
    macs = {
        node.output: math.prod(quantized.tensors[node.output].shape) * node.op.weight[0].size
        for node in quantized.nodes
        if isinstance(node.op, QConv2d | QDense) and node.op.weight.itemsize == 1
    }
    each = _CROSSING * sum(macs.values())
    added = {
        output: noise.sources.weights / noise.noise.signal
        for output, noise in noise_sources(graph, quantized, few).items()
        if output in able and output in macs and noise.sources and noise.noise.signal
    }
    least = _LEAST_SHARE * sum(added.values())
    worth = {output: share / (macs[output] + each) for output, share in added.items()}
    return [
        able[output] for output in sorted(worth, key=lambda o: -worth[o]) if added[output] > least
    ]


def fewest(
    layers: Sequence[str],
    changed: Callable[[tuple[str, ...]], float],
    before: float,
    limit: float,
) -> tuple[str, ...]:
    """The fewest of the first layers with which at most `limit` of the answers change.

    Where all of them are not enough, hardly more may change than with all; none are wide if that is
    more than half of what changes `before`: then it is not their weights.

    Args:
        changed: the share of answers that change where these layers are wide.
    """
    if not layers:
        return ()
    least = changed(tuple(layers))
    if least > max(limit, before / 2):
        return ()
    enough = max(limit, least * _AS_GOOD)
    too_few, count = 0, 1
    while count < len(layers) and changed(tuple(layers[:count])) > enough:
        too_few, count = count, min(2 * count, len(layers))
    while count - too_few > 1:
        middle = (count + too_few) // 2
        if changed(tuple(layers[:middle])) <= enough:
            count = middle
        else:
            too_few = middle
    return tuple(layers[:count])
