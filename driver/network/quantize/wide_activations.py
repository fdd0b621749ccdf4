"""Which layers have results of 16 bits instead of 8, and how many of the bits are used.

Rounding to 8 bits behind every layer costs some networks as much of their accuracy as weights of 8
bits do. What a convolution or a dense layer makes can have 16 if only such layers read it: two
planes of int8, high and low, that the accelerator stores one after the other. GEMM goes over both
where it is read.

Sums of products of such numbers have to stay within int32. So results are within -M..M, with as
large an M as the layers that read them have room for with the bits of their weights.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from driver.network.graph.ir import Conv2d, Dense, FloatArray, Graph, GraphNode, Reshape
from driver.network.integer.blocks import is_view
from driver.network.integer.qir import INT8_MAX, MAX_WIDE
from driver.network.quantize.layer_selection import named
from driver.network.quantize.power_of_two_requantization import ACC_LIMIT, MAX_MUL
from driver.network.quantize.weight_chunks import bands

_ROOM: Final = ACC_LIMIT // 2
"""Of a sum of products: the other half is for the bias."""
_BELOW_SHIFT: Final = 4
"""By how many bits operands stay below the widest shift behind sums: a weight is wrong by half of
2^-shift, so hundreds of weights make no step of the result then."""
_SPARE: Final = 2.0
"""Of the largest value that was seen."""
_LEAST: Final = 1e-30
"""No weight that counts is as small."""

_Layer: TypeAlias = Conv2d | Dense


def wide_results(
    graph: Graph, patterns: Sequence[str], floats: Mapping[str, str]
) -> frozenset[str]:
    """The names of the nodes whose results have 16 bits.

    A layer that the user keeps in float has none, nor has one whose result such a layer reads.

    Args:
        graph: a float network.
        patterns: names of nodes; `*`, `?` and `[...]` as in file names.
        floats: the nodes that stay in float, with the reasons; patterns leave them out.

    Raises:
        SettingsError: no node has a name, or the result of one cannot have 16 bits; all such are
            listed.
    """
    if not patterns:
        return frozenset()
    lacking = wide_result_reasons(graph)
    for name in floats.keys() & {*patterns}:
        lacking[name] = f"stays in float: {floats[name]}"
    found = {*named("--wide-activations", patterns, lacking)} - floats.keys()
    readers = _Readers(graph)
    return frozenset(
        node.name
        for node in graph.nodes
        if node.name in found and not any(each.name in floats for each in readers.of(node.output))
    )


def wide_result_reasons(graph: Graph) -> dict[str, str]:
    """Why the result of each node cannot have 16 bits, by the node's name; empty if it can."""
    readers = _Readers(graph)
    return {node.name: _reason(node, readers) for node in graph.nodes}


def largest_results(
    graph: Graph, names: Collection[str], with_wide_weights: Collection[str], max_shift: int
) -> dict[str, int]:
    """The largest magnitude of the results of 16 bits, by tensor.

    Args:
        graph: a float network.
        names: the layers that make them.
        with_wide_weights: the layers with weights of 16 bits.
        max_shift: by how many bits sums of weights are shifted at most.
    """
    readers = _Readers(graph)
    shifted = (1 << max(max_shift - _BELOW_SHIFT, 0)) - 1
    found = {}
    for node in graph.nodes:
        if node.name in names:
            rooms = [
                _room(each.op, is_wide=each.name in with_wide_weights)
                for each in readers.of(node.output)
                if isinstance(each.op, _Layer)
            ]
            most = min(MAX_WIDE, shifted, *rooms)
            if most > INT8_MAX:
                found[node.output] = most
    return found


def with_spare(
    graph: Graph, ranges: Mapping[str, float], wide: Collection[str]
) -> dict[str, float]:
    """The ranges, where those of wide tensors have room for more than the data had.

    A bit of so many is cheap, and without it noise is cut where values are largest. What a layer
    clips anyway needs none.
    """
    more = {
        node.output: min(_SPARE * ranges[node.output], max(-node.op.lo, node.op.hi))
        for node in graph.nodes
        if node.output in wide and isinstance(node.op, _Layer)
    }
    return {**ranges, **more}


class _Readers:
    """The nodes that read a tensor, as it is or in another shape of the same bytes."""

    def __init__(self, graph: Graph) -> None:
        self._shapes = graph.shapes
        self._users = graph.users()
        self.outputs = {output.tensor for output in graph.outputs}

    def of(self, name: str) -> Iterator[GraphNode]:
        """These; a reshape that moves bytes, or makes an output, is one of them."""
        for user in self._users[name]:
            if isinstance(user.op, Reshape) and self._stays(user):
                yield from self.of(user.output)
            else:
                yield user

    def _stays(self, node: GraphNode) -> bool:
        """Whether blocked data stay where they are, or weights are sorted to follow them."""
        before, after = self._shapes[node.inputs[0]], self._shapes[node.output]
        flattens = before[0] == after[0] and len(before) > 2 == len(after)
        are_dense = all(isinstance(each.op, Dense) for each in self._users[node.output])
        return node.output not in self.outputs and (
            is_view(before, after) or (flattens and are_dense)
        )


def _reason(node: GraphNode, readers: _Readers) -> str:
    if not isinstance(node.op, _Layer):
        return f"{type(node.op).__name__} makes 8 bits only"
    if node.output in readers.outputs:
        return "its result is an output of the network"
    found = [*readers.of(node.output)]
    for each in found:
        if not isinstance(each.op, _Layer):
            return f"{each.name} ({type(each.op).__name__}), which reads its result, takes 8 bits"
        if _room(each.op, is_wide=False) <= INT8_MAX:
            return f"{each.name}, which reads its result, has no room for more in its sums"
    return "" if found else "nothing reads its result"


def _room(op: Conv2d | Dense, *, is_wide: bool) -> int:
    """The largest magnitude of operands with which the sums stay within int32.

    Weights use all of their 8 bits; where they have 16, they share what room there is with the
    operands.
    """
    terms = max((_terms(op.weight[band]) for band in bands(op.weight)), default=1.0)
    return int(math.sqrt(_ROOM / terms) if is_wide else _ROOM / (MAX_MUL * terms))


def _terms(weight: FloatArray) -> float:
    """How many weights as large as the largest have the sum of a channel's [Co, ...], at most."""
    sizes = np.abs(weight.reshape(len(weight), -1))
    largest = np.maximum(sizes.max(axis=1, initial=0.0), _LEAST)
    return float((sizes.sum(axis=1, dtype=np.float64) / largest).max(initial=1.0))
