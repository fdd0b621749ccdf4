"""Which layers get weights or results of 16 bits: the cheapest that take enough noise away.

Layers are sorted by the noise that 8 bits of weights or of results add and by what twice the work
costs. One, two, four and so on of them are tried until few enough answers change; bisection finds
the fewest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from driver.network.accuracy.fewest import first_enough
from driver.network.accuracy.noise_sources import TensorNoise, noise_sources
from driver.network.graph.ir import Graph
from driver.network.graph.parts import Arrays
from driver.network.integer.qir import QConv2d, QDense, QuantGraph
from driver.network.quantize.options import Quantization
from driver.network.quantize.wide_activations import wide_result_reasons
from driver.network.quantize.wide_weights import has_no_wide_form

Part: TypeAlias = Literal["weights", "results"]

_CROSSING: Final = 0.01
"""Of the network's multiply-accumulates: what a layer costs besides its own."""
_AS_GOOD: Final = 1.25
"""By how much more answers may change than with all layers wide, to be as good."""
_LEAST_SHARE: Final = 1e-3
"""Of all noise, from which on a layer is worth trying."""


@dataclass(frozen=True, slots=True)
class Widening:
    """16 bits instead of 8 for what a layer has, or for what it makes."""

    part: Part
    layer: str


def with_widenings(how: Quantization, chosen: Sequence[Widening]) -> Quantization:
    """The way with these besides its own."""

    def names(part: Part, given: tuple[str, ...] | None) -> tuple[str, ...] | None:
        more = tuple(each.layer for each in chosen if each.part == part)
        return (*(given or ()), *more) if more else given

    return replace(
        how,
        wide=names("weights", how.wide),
        wide_activations=names("results", how.wide_activations),
    )


def widenings(graph: Graph, quantized: QuantGraph, few: Arrays) -> list[Widening]:
    """What may have 16 bits, those first that are worth most.

    Worth is the share of the noise that 8 bits add, by the work that is done twice.

    Args:
        graph: the float network that `quantized` stands for, see
            `quantize.float_form.float_form`.
        few: some samples.
    """
    macs = {
        node.output: math.prod(quantized.tensors[node.output].shape) * node.op.weight[0].size
        for node in quantized.nodes
        if isinstance(node.op, QConv2d | QDense)
    }
    each = _CROSSING * sum(macs.values())
    noise = noise_sources(graph, quantized, few)
    found: dict[Widening, tuple[float, float]] = {}
    for node in _with_wide_form(graph, quantized):
        if share := _share(noise, node, "weights"):
            found[Widening("weights", node)] = (share, macs[node] + each)
    for node, readers in _with_wide_results(graph, quantized).items():
        if share := _share(noise, node, "results"):
            again = macs[node] + sum(macs.get(reader, 0) for reader in readers)
            found[Widening("results", node)] = (share, again + each)
    least = _LEAST_SHARE * sum(share for share, _ in found.values())
    names = {node.output: node.name for node in graph.nodes}
    ordered = sorted(found, key=lambda one: -found[one][0] / found[one][1])
    return [Widening(one.part, names[one.layer]) for one in ordered if found[one][0] > least]


def _with_wide_form(graph: Graph, quantized: QuantGraph) -> list[str]:
    """The results of layers with weights of 8 bits that can have 16."""
    able = {node.output for node in graph.nodes if not has_no_wide_form(node.op)}
    return [
        node.output
        for node in quantized.nodes
        if node.output in able
        and isinstance(node.op, QConv2d | QDense)
        and node.op.weight.itemsize == 1
    ]


def _with_wide_results(graph: Graph, quantized: QuantGraph) -> dict[str, list[str]]:
    """The results of 8 bits that can have 16, with the results of what reads them."""
    lacking, users = wide_result_reasons(graph), graph.users()
    made = {node.output: node for node in quantized.nodes}
    return {
        node.output: [user.output for user in users[node.output]]
        for node in graph.nodes
        if not lacking[node.name]
        and node.output in made
        and quantized.tensors[node.output].dtype.nbytes == 1
        and isinstance(made[node.output].op, QConv2d | QDense)
    }


def _share(noise: Mapping[str, TensorNoise], name: str, part: Part) -> float:
    """What a layer adds by 8 bits of it, by the signal of its result."""
    found = noise.get(name)
    if found is None or found.sources is None or not found.noise.signal:
        return 0.0
    added = found.sources.weights if part == "weights" else found.sources.own
    if part == "results":
        added -= found.sources.weights
    return added / found.noise.signal


def fewest(
    found: Sequence[Widening],
    changed: Callable[[tuple[Widening, ...]], float],
    before: float,
    limit: float,
) -> tuple[Widening, ...]:
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
