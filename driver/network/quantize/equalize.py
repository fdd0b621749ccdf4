"""Cross-layer equalization: channels of a tensor brought to ranges that one scale suits better.

A channel is divided by a factor, in the weights that make it, and multiplied by it, in those that
read it; the network's results stay. Source: M. Nagel et al., Data-Free Quantization Through Weight
Equalization and Bias Correction, ICCV 2019, which brings the ranges of the weights on both sides
together. Here the channel's own range over data counts as well (as in G. Xiao et al., SmoothQuant,
ICML 2023): a tensor has one scale, whereas each channel of a layer may have its own shift.

A ReLU6 cuts all channels at 6. Those that stay far below it over the data are brought nearer to it,
but not so far that it would cut them; those that it cuts stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driver.network.graph.float_run import run_float
from driver.network.graph.ir import FloatArray, Graph, GraphNode
from driver.network.quantize.calibrate import by_name
from driver.network.quantize.channel_groups import ChannelGroups
from driver.network.quantize.channel_weights import (
    Weighted,
    group_count,
    largest_weights,
    read_channels,
    rescaled,
)
from driver.network.quantize.weight_chunks import CACHED_ELEMENTS, bands

Reals: TypeAlias = NDArray[np.float64]

_LEAST_SHARE: Final = 1 / 4
"""Of the largest of a kind: what is smaller counts as this. Data that calibration has not seen
drive channels that hardly ever speak further than those that always do."""
_BELOW_TOP: Final = 2.0
"""How far above a channel's largest value a clip stays, which calibration has not seen cut it."""
_SWEEPS: Final = 20
_STEP: Final = 0.5
"""All factors move at once, and each one moves what the others are compared with."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Way:
    """A layer between channels by their numbers: [Co] made, in equal groups, from [groups, K].

    Attributes:
        weight: [Co, K], by their magnitudes.
        rows: [Co], the largest of each, small ones lifted to a share of the largest.
    """

    made: NDArray[np.int64]
    read: NDArray[np.int64]
    weight: FloatArray
    rows: Reals

    def scaled(self, factors: Reals) -> tuple[Reals, Reals]:
        """The largest weight of each row [Co] with these factors, and shares [groups, K].

        A share is the largest that a weight on a channel that is read has in any row's largest.
        """
        rows, shares = np.empty(len(self.rows)), np.zeros(self.read.shape)
        read = factors[self.read][:, None].astype(np.float32)
        for band in self._parts():
            weight = _lifted(self.weight[band]).reshape(len(read), -1, read.shape[2]) * read
            most = weight.max(axis=2, keepdims=True)
            shares = np.maximum(shares, (weight / most).max(axis=1))
            rows[band] = most.reshape(-1)
        return rows * self.rows / factors[self.made], shares

    def _parts(self) -> Iterator[slice]:
        """Rows that are worked on together: of layers in groups, which are never large, all."""
        one_group = len(self.read) == 1
        return bands(self.weight, 1 if one_group else len(self.rows), CACHED_ELEMENTS)


def equalized(graph: Graph, calibration: FloatArray | Mapping[str, FloatArray]) -> Graph:
    """The graph with the same results, to rounding, whose channels differ less in their ranges.

    It is `graph` itself where no channel can be changed.

    The factors are those of least squares, in logarithms, that bring three ranges together, each
    relative to the largest of its kind in its tensor or layer: of the weights that make a channel,
    of its values over the calibration data, and of the weights that read it.

    Args:
        graph: a float network, folded.
        calibration: as for `quantize.calibrate.calibrate`.
    """
    groups = ChannelGroups(graph)
    reach = _reach(graph, by_name(graph, calibration))
    if not all(np.isfinite(values).all() for values in reach.values()):
        return graph  # calibration says which tensor the data drive too far
    least, most = _limits(groups, reach)
    reach = {name: _at_least_a_share(values) for name, values in reach.items()}
    ways = [_way(node, groups) for node in graph.nodes if isinstance(node.op, Weighted)]
    factors = np.zeros(groups.count)
    for _ in range(_SWEEPS):
        wished = factors + _STEP * _wish(np.exp(factors), groups, reach, ways)
        factors = np.clip(wished, least, most)
    return _scaled(graph, groups, np.exp(factors)) if factors.any() else graph


def _limits(groups: ChannelGroups, reach: Mapping[str, Reals]) -> tuple[Reals, Reals]:
    """The logarithms of the least and the largest factor of each channel.

    Both are 0 where a clip cuts the channel, or nearly.
    """
    least = np.zeros(groups.count)
    for name, values in reach.items():
        numbers = np.arange(groups.count)[groups.channels(name)]
        cut = groups.top[numbers]
        np.maximum.at(least, groups.group[numbers], _BELOW_TOP * values / cut)
    is_cut = np.zeros(groups.count, np.bool_)
    np.logical_or.at(is_cut, groups.group, np.isfinite(groups.top))
    least = np.where(is_cut, np.clip(least, _LEAST_SHARE, 1.0), 0.0)
    with np.errstate(divide="ignore"):
        lower = np.log(least)
    upper = np.where(is_cut, 0.0, np.inf)
    free = groups.is_free
    return (
        np.where(free, lower[groups.group], 0.0),
        np.where(free, upper[groups.group], 0.0),
    )


def _reach(graph: Graph, inputs: Mapping[str, FloatArray]) -> dict[str, Reals]:
    """The largest magnitude of every channel [C] of every tensor that has channels."""
    found: dict[str, Reals] = {}

    def observe(name: str, values: FloatArray) -> None:
        others = tuple(axis for axis in range(values.ndim) if axis != 1)
        largest = np.abs(values).max(axis=others, initial=0.0).astype(np.float64)
        found[name] = np.maximum(found.get(name, 0.0), largest)

    with np.errstate(over="ignore", invalid="ignore"):
        run_float(graph, inputs, observe=observe)
    return found


def _way(node: GraphNode, groups: ChannelGroups) -> _Way:
    assert isinstance(node.op, Weighted)
    numbers = np.arange(groups.count)
    made, read = (numbers[groups.channels(name)] for name in (node.output, node.inputs[0]))
    weight = largest_weights(node.op)
    first_rows = slice(None, None, len(made) // group_count(node.op))
    return _Way(
        made=made,
        read=read[read_channels(node.op)[first_rows]],
        weight=weight,
        rows=_at_least_a_share(np.maximum(weight.max(axis=1), -weight.min(axis=1))),
    )


def _wish(
    factors: Reals, groups: ChannelGroups, reach: Mapping[str, Reals], ways: Sequence[_Way]
) -> Reals:
    """What the logarithm of every factor should grow by; nothing where it must be 1."""
    makes, speaks, reads = np.zeros((3, groups.count))
    for name, each in reach.items():
        channels = groups.channels(name)
        _note(speaks, groups.group[channels], each / factors[channels])
    for way in ways:
        rows, shares = way.scaled(factors)
        _note(makes, groups.group[way.made], rows)
        _note(reads, groups.group[way.read], shares)
    kinds = np.array([makes, speaks, reads])
    makes, speaks, reads = np.log(np.where(kinds, kinds, 1))
    wish = (makes + speaks - reads) / np.maximum((kinds > 0).sum(axis=0), 1)
    return np.where(groups.is_free, wish[groups.group], 0)


def _note(largest: Reals, groups: NDArray[np.int64], values: Reals) -> None:
    """Takes each value, relative to the largest of all, for its group if it has no larger one."""
    np.maximum.at(largest, groups, values / values.max())


def _at_least_a_share(values: Reals) -> Reals:
    """The values, small ones lifted to a share of the largest; all alike where that is zero."""
    return np.maximum(values, values.max() * _LEAST_SHARE) if values.any() else values + 1


def _lifted(weight: FloatArray) -> FloatArray:
    """Weights [Co, K] by their share of the largest of their row, small ones lifted to one."""
    sizes = np.abs(weight)
    largest = sizes.max(axis=1, keepdims=True)
    sizes /= np.where(largest, largest, 1)
    return np.maximum(sizes, np.float32(_LEAST_SHARE), out=sizes)


def _scaled(graph: Graph, groups: ChannelGroups, factors: Reals) -> Graph:
    """The graph with every channel divided by its factor."""
    nodes = []
    for node in graph.nodes:
        if isinstance(node.op, Weighted):
            before, after = (factors[groups.channels(n)] for n in (node.inputs[0], node.output))
            node = replace(node, op=rescaled(node.op, before, after))
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))
