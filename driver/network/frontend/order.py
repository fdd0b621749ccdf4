"""The nodes that the outputs need, each after those it reads."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

import onnx

from driver.network.frontend.reasons import Reasons

_MOST_NAMES = 8
_AGAIN = "export the model again: each result is made once, by a node that does not need it"


def needed_in_order(
    graph: onnx.GraphProto, reasons: Reasons
) -> tuple[list[onnx.NodeProto], list[onnx.NodeProto]]:
    """The needed nodes, producers first, otherwise in the order of the file; and those that cannot.

    The second list holds the nodes of rings and those behind them. Rings become reasons, and names
    that are made twice, of which the first node counts.
    """
    known = {tensor.name for tensor in graph.initializer}
    known.update(value.name for value in graph.input)
    makers = _makers(graph, known, reasons)
    needed = _needed(graph, makers)
    waits_for = {
        index: {makers[name] for name in graph.node[index].input if name in makers}
        for index in needed
    }
    order = _producers_first(waits_for)
    stuck = needed.difference(order)
    if stuck:
        reasons.add(_ring(graph, {index: waits_for[index] & stuck for index in stuck}), _AGAIN)
    return [graph.node[index] for index in order], [graph.node[index] for index in sorted(stuck)]


def _makers(graph: onnx.GraphProto, known: set[str], reasons: Reasons) -> dict[str, int]:
    """Which node makes each name."""
    makers: dict[str, int] = {}
    for index, node in enumerate(graph.node):
        for name in filter(None, node.output):
            if name in makers or name in known:
                label = f"{node.name or name} ({node.op_type})"
                reasons.add(f"{label}: its output {name!r} is made twice", _AGAIN)
            else:
                makers[name] = index
    return makers


def _ring(graph: onnx.GraphProto, waits_for: Mapping[int, set[int]]) -> str:
    """Names the nodes in and between rings, not those that only stand behind one."""
    read_by: dict[int, set[int]] = {index: set() for index in waits_for}
    for index, producers in waits_for.items():
        for producer in producers:
            read_by[producer].add(index)
    nodes = [graph.node[index] for index in sorted(waits_for.keys() - _producers_first(read_by))]
    names = [f"{node.name or node.output[0]} ({node.op_type})" for node in nodes[:_MOST_NAMES]]
    more = f" and {len(nodes) - _MOST_NAMES} more" if len(nodes) > _MOST_NAMES else ""
    return f"the network is cyclic; these nodes wait in a ring: {', '.join(names)}{more}"


def _needed(graph: onnx.GraphProto, makers: Mapping[str, int]) -> set[int]:
    """The nodes that some output depends on."""
    needed: set[int] = set()
    open_names = [output.name for output in graph.output]
    while open_names:
        index = makers.get(open_names.pop())
        if index is not None and index not in needed:
            needed.add(index)
            open_names.extend(graph.node[index].input)
    return needed


def _producers_first(waits_for: Mapping[int, set[int]]) -> list[int]:
    """A topological order that takes the smallest ready index first; a ring is left out."""
    open_count = {index: len(producers) for index, producers in waits_for.items()}
    readers: dict[int, list[int]] = {index: [] for index in waits_for}
    for index, producers in waits_for.items():
        for producer in producers:
            readers[producer].append(index)
    ready = [index for index, count in open_count.items() if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for reader in readers[index]:
            open_count[reader] -= 1
            if open_count[reader] == 0:
                heapq.heappush(ready, reader)
    return order
