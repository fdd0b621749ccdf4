"""What the nodes of an ONNX file became: the nodes that are inside each one of the folded graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx

from driver.network.frontend.function_inlining import model_with_bodies
from driver.network.frontend.taken_branch import note_captures
from driver.network.graph.ir import Gather, Graph, Reshape


@dataclass(frozen=True, slots=True)
class Origin:
    """A node of an ONNX file, by its name there (or that of its result), and its operator."""

    name: str
    operator: str


def origins(path: Path, graph: Graph) -> dict[str, tuple[Origin, ...]]:
    """The nodes of the file between every folded node's operands and its result, by the result.

    A tensor keeps its name from the file to the graph, and one that only the graph has begins with
    the name of the result that it belongs to. So what was folded into a node lies between its
    tensors; what computes weights is not counted.

    Args:
        path: the file that `graph` was imported from.
    """
    model = model_with_bodies(path)
    note_captures(model.graph)
    makers = {name: node for node in model.graph.node for name in node.output if name}
    reach = _from_inputs(model.graph, {i.name for i in graph.inputs})
    moved = {node.output for node in graph.nodes if isinstance(node.op, Reshape | Gather)}
    known = {_in_file(name, makers) for name in graph.shapes if name in makers or name not in moved}
    return {
        node.output: _between(_in_file(node.output, makers), known, makers, reach)
        for node in graph.nodes
    }


def _in_file(name: str, makers: Mapping[str, onnx.NodeProto]) -> str:
    """The file's tensor that one of the graph belongs to: the longest that its name begins with."""
    while name not in makers and "." in name:
        name = name.rpartition(".")[0]
    return name


def _from_inputs(graph: onnx.GraphProto, given: set[str]) -> set[str]:
    """The tensors that depend on what the user gives; files may name nodes in any order."""
    reach, before = set(given), -1
    while len(reach) > before:
        before = len(reach)
        for node in graph.node:
            if reach.intersection(node.input):
                reach.update(node.output)
    return reach


def _between(
    result: str, known: set[str], makers: Mapping[str, onnx.NodeProto], reach: set[str]
) -> tuple[Origin, ...]:
    found: dict[int, Origin] = {}
    waiting = [result]
    while waiting:
        name = waiting.pop()
        node = makers.get(name)
        if node is None or id(node) in found or (name in known and name != result):
            continue
        found[id(node)] = Origin(node.name or node.output[0], node.op_type)
        waiting += [source for source in node.input if source in reach]
    return tuple(reversed(found.values()))
