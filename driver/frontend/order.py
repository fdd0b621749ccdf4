"""The nodes that the outputs need, each after those it reads."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping
from pathlib import Path

import onnx
from tilefarm.errors import ModelError

_MOST_NAMES = 8


def needed_in_order(
    graph: onnx.GraphProto, known: Collection[str], path: Path
) -> list[onnx.NodeProto]:
    """The needed nodes, producers first, otherwise in the order of the file.

    Raises:
        ModelError: two nodes make one name, no node makes an output, or nodes wait in a ring.
    """
    makers = _makers(graph, known, path)
    missing = [o.name for o in graph.output if o.name not in makers and o.name not in known]
    if missing or not graph.output:
        raise ModelError(f"{path}: no node makes the output {', '.join(missing) or '(none named)'}")
    needed = _needed(graph, makers)
    waits_for = {
        index: {makers[name] for name in graph.node[index].input if name in makers}
        for index in needed
    }
    order = _producers_first(waits_for)
    if len(order) < len(needed):
        stuck = [graph.node[index] for index in sorted(needed - set(order))[:_MOST_NAMES]]
        names = ", ".join(f"{node.name or node.output[0]} ({node.op_type})" for node in stuck)
        raise ModelError(f"{path}: the network is cyclic; these nodes wait in a ring: {names}")
    return [graph.node[index] for index in order]


def _makers(graph: onnx.GraphProto, known: Collection[str], path: Path) -> dict[str, int]:
    """Which node makes each name."""
    makers: dict[str, int] = {}
    for index, node in enumerate(graph.node):
        for name in node.output:
            if name in makers or name in known:
                label = f"{node.name or name} ({node.op_type})"
                raise ModelError(f"{path}: {label}: its output {name!r} is made twice")
            if name:
                makers[name] = index
    return makers


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
