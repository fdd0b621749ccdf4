"""What can be done about the noise of which layers, and the fewest 16 bits that are enough.

One, two, four and so on of the remedies that are worth most are tried until few enough answers
change; bisection finds the fewest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from driver.network.accuracy.blame import Blamed, blamed
from driver.network.accuracy.fewest import first_enough
from driver.network.accuracy.noise_sources import noise_sources
from driver.network.accuracy.remedies import Kind, Remedy, remedies
from driver.network.graph.ir import Graph
from driver.network.graph.parts import Arrays
from driver.network.integer.network import Network
from driver.network.integer.qir import QConv2d, QDense, QuantGraph
from driver.network.quantize.floats import has_no_kernel
from driver.network.quantize.integer_bias import has_wide_weights
from driver.network.quantize.options import Quantization
from driver.network.quantize.wide_activations import wide_result_reasons
from driver.network.quantize.wide_weights import has_no_wide_form
from driver.network.quantize.zero_points import copied_tensors

_AS_GOOD: Final = 1.25
"""By how much more answers may change than with all layers wide, to be as good."""
_LEAST_SHARE: Final = 1e-3
"""Of all noise that 16 bits take away, from which on a layer is worth trying."""


def with_remedies(how: Quantization, chosen: Sequence[Remedy]) -> Quantization:
    """The way with these besides its own."""

    def layers(kind: Kind, given: tuple[str, ...] | None) -> tuple[str, ...] | None:
        more = tuple(each.layer for each in chosen if each.kind == kind)
        return (*(given or ()), *more) if more else given

    kinds = {each.kind for each in chosen}
    made = replace(
        how,
        wide=layers("wide", how.wide),
        wide_activations=layers("results", how.wide_activations),
        activations="asymmetric" if "asymmetric" in kinds else how.activations,
        share_shifts=True if "shared" in kinds else how.share_shifts,
    )
    return made.with_float(layers("float", ()) or ())


def widenings(graph: Graph, quantized: QuantGraph, few: Arrays) -> list[Remedy]:
    """What may have 16 bits, those first that are worth most: noise by the work that is done twice.

    Args:
        graph: the float network that `quantized` stands for, see
            `quantize.float_form.float_form`.
        few: some samples.
    """
    macs = {
        node.name: math.prod(quantized.tensors[node.output].shape) * node.op.weight[0].size
        for node in quantized.nodes
        if isinstance(node.op, QConv2d | QDense)
    }
    found = remedies(
        blamed(noise_sources(graph, quantized, few), quantized, macs),
        wide=wide_weights_possible(graph, quantized),
        results=readers_of_wide_results(graph, quantized, macs),
        floats=(),
        macs=sum(macs.values()),
        macs_per_cycle=1,
    )
    least = _LEAST_SHARE * sum(each.share for each in found)
    return [each for each in found if each.share > least]


def remedies_for(
    graph: Graph,
    quantized: QuantGraph,
    network: Network,
    how: Quantization,
    layers: Sequence[Blamed],
) -> list[Remedy]:
    """All that can be done about the layers, the best first.

    Args:
        graph: the float network; `quantized` and `network` were made of it by the way `how`.
    """
    lanes, copied = network.target.lanes, copied_tensors(graph)
    elements = sum(math.prod(graph.shapes[name]) for name in copied)
    return remedies(
        layers,
        wide=wide_weights_possible(graph, quantized),
        results=readers_of_wide_results(graph, quantized, {one.name: one.macs for one in layers}),
        floats={node.name for node in graph.nodes if not has_no_kernel(node.op)},
        macs=network.macs,
        macs_per_cycle=lanes.batch * lanes.block**2,
        borders=None if how.activations == "asymmetric" or not copied else elements,
    )


def wide_weights_possible(graph: Graph, quantized: QuantGraph) -> frozenset[str]:
    """The layers with weights of 8 bits that can have 16."""
    have = {node.name for node in quantized.nodes if has_wide_weights(node.op)}
    return frozenset(node.name for node in graph.nodes if not has_no_wide_form(node.op)) - have


def readers_of_wide_results(
    graph: Graph, quantized: QuantGraph, macs: Mapping[str, int]
) -> dict[str, int]:
    """The layers whose results have 8 bits and can have 16, with the work of what reads them.

    Args:
        macs: multiply-accumulates of each layer.
    """
    lacking, users = wide_result_reasons(graph), graph.users()
    return {
        node.name: sum(macs.get(user.name, 0) for user in users[node.output])
        for node in graph.nodes
        if not lacking[node.name] and quantized.tensors[node.output].dtype.nbytes == 1
    }


def fewest(
    found: Sequence[Remedy],
    changed: Callable[[tuple[Remedy, ...]], float],
    before: float,
    limit: float,
) -> tuple[Remedy, ...]:
    """The fewest of the first ones with which at most `limit` of the answers change.

    Where all of them are not enough, hardly more may change than with all; none are taken if that
    is more than half of what changes `before`: then it is not these.

    Args:
        changed: the share of answers that change with these.
    """
    if not found:
        return ()
    least = changed(tuple(found))
    if least > max(limit, before / 2):
        return ()
    enough = max(limit, least * _AS_GOOD)
    return first_enough(found, lambda some: changed(some) <= enough)
