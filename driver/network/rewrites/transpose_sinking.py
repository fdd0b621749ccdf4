"""Moves as late as can be: between two of them stand operators that need neither, so they cancel.

    normalize(transpose(conv(x)), last axis)  ->  transpose(normalize(conv(x), channels))

Every tensor is a move of one that is computed; a move is made only for an operator that wants its
operand as it is. Transformers, which exporters write with channels last, become convolutions of one
pixel and products along the channels, with hardly a move between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from driver.network.graph import ir
from driver.network.graph.ir import FloatArray, Graph, GraphNode, IndexArray, Shape, Window
from driver.network.graph.shapes import graph_of, result_shape
from driver.network.rewrites.moved_operators import (
    along_there,
    constants_of,
    taking,
    unless_in_order,
    varied_axes,
    with_constants,
)
from driver.network.rewrites.rearranged import inverse, is_bijective, rearrangement_of
from driver.network.rewrites.transpose_analysis import Paths, suited


def with_late_moves(graph: Graph) -> Graph:
    """The graph with the same results in which moves are made where somebody needs them."""
    if not any(_is_move(node, graph) for node in graph.nodes):
        return graph
    mover = _Mover(graph)
    for node in graph.nodes:
        mover.take(node)
    return mover.finish()


def _is_move(node: GraphNode, graph: Graph) -> bool:
    """Whether a node only changes the order of all elements."""
    elements = math.prod(graph.shapes[node.output][1:])
    return isinstance(node.op, ir.Gather) and is_bijective(node.op.index, elements)


@dataclass(frozen=True, slots=True, eq=False)
class _Lies:
    """Where a tensor's elements are in a sample of `source`; `index` None: in the same order."""

    source: str
    index: IndexArray | None

    def places(self, shape: Shape) -> IndexArray:
        """The index, for a tensor of `shape` [N, ...]."""
        if self.index is None:
            return np.arange(math.prod(shape[1:]), dtype=np.int32).reshape(shape[1:])
        return self.index.reshape(shape[1:])


class _Mover:
    """Walks a graph in order; knows where the elements of every tensor lie."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._paths = Paths(graph)
        self._nodes: list[GraphNode] = []
        self._shapes: dict[str, Shape] = {i.name: i.shape for i in graph.inputs}
        self._lies = {i.name: _Lies(i.name, None) for i in graph.inputs}
        self._made: dict[str, str] = {i.name: i.name for i in graph.inputs}
        self._moves: dict[tuple[str, Shape, bytes], str] = {}

    def take(self, node: GraphNode) -> None:
        """Adds what a node computes, and leaves its moves for later."""
        match node.op:
            case ir.Reshape():
                self._lies[node.output] = self._lies[node.inputs[0]]
            case ir.Gather(index=index):
                self._gather(node, index)
            case ir.Slice(start=start, stop=stop):
                shape = self._graph.shapes[node.inputs[0]]
                self._gather(node, _Lies("", None).places(shape)[start:stop])
            case ir.Unary() | ir.Clip() | ir.FakeQuantize() | ir.ScaleSums():
                lies = self._lies[node.inputs[0]]
                self._emit(node, node.op, (lies.source,), lies.index)
            case ir.Add() | ir.Product() if self._are_alike(node):
                self._combine(node)
            case ir.Affine() | ir.Slopes():
                self._per_channel(node, node.op)
            case ir.Reduce() | ir.Normalize() | ir.Softmax():
                self._along_axes(node, node.op)
            case ir.Dense(weight=weight):
                lies = self._lies[node.inputs[0]]
                if lies.index is not None:
                    weight = np.ascontiguousarray(weight[:, inverse(lies.index)])
                source = self._shaped(lies.source, weight.shape[1:])
                self._emit(node, replace(node.op, weight=weight), (source,), None)
            case ir.Conv2d() if (pixels := self._pixels(node, node.op)) is not None:
                self._pointwise(node, node.op, pixels)
            case _:
                operands = tuple(self._moved(name) for name in node.inputs)
                self._emit(node, node.op, operands, None)

    def finish(self) -> Graph:
        """The graph, its outputs in their own order."""
        graph = self._graph
        outputs = [replace(each, tensor=self._moved(each.tensor)) for each in graph.outputs]
        return graph_of(graph.name, graph.inputs, outputs, self._nodes)

    def _emit(
        self, node: GraphNode, op: ir.Operator, operands: tuple[str, ...], index: IndexArray | None
    ) -> None:
        """Adds a node that makes the elements of another one's result, in another order."""
        self._put(node.name, op, operands, node.output)
        self._lies[node.output] = _Lies(node.output, index)
        if index is None and self._shapes[node.output] == self._graph.shapes[node.output]:
            self._made[node.output] = node.output

    def _put(self, name: str, op: ir.Operator, operands: tuple[str, ...], result: str) -> str:
        self._shapes[result] = result_shape(op, [self._shapes[each] for each in operands])
        self._nodes.append(GraphNode(name=name, op=op, inputs=operands, output=result))
        return result

    def _beside(self, name: str, op: ir.Reshape | ir.Gather, source: str) -> str:
        """The result of a move: `name`, or one that is free, or what the same move made before."""
        index = op.index.tobytes() if isinstance(op, ir.Gather) else b""
        move = (source, result_shape(op, [self._shapes[source]]), index)
        if move not in self._moves:
            self._moves[move] = self._put(name, op, (source,), self._free(name))
        return self._moves[move]

    def _free(self, name: str) -> str:
        """`name` if that is not taken, else one that begins with it."""
        own = name in self._lies and name not in self._shapes
        while not own and (name in self._shapes or name in self._graph.shapes):
            name += ".moved"
        return name

    def _shaped(self, source: str, shape: Shape) -> str:
        """A tensor that is computed, under another shape (without the batch)."""
        if self._shapes[source][1:] == shape:
            return source
        return self._beside(f"{source}.shaped", ir.Reshape(shape=shape), source)

    def _moved(self, name: str) -> str:
        """A tensor in its own order; made once."""
        if name not in self._made:
            lies, shape = self._lies[name], self._graph.shapes[name]
            op: ir.Reshape | ir.Gather = ir.Reshape(shape=shape[1:])
            if lies.index is not None:
                op = ir.Gather(index=np.ascontiguousarray(lies.places(shape)))
            self._made[name] = self._beside(name, op, lies.source)
        return self._made[name]

    def _gather(self, node: GraphNode, index: IndexArray) -> None:
        """Some elements of a tensor, in the order in which they are computed."""
        lies = self._lies[node.inputs[0]]
        places = index
        if lies.index is not None:
            places = np.where(index < 0, -1, lies.index.reshape(-1)[np.maximum(index, 0)])
        flat = places.reshape(-1).astype(np.int32)
        form = self._shapes[lies.source]
        is_taken = np.zeros(math.prod(form[1:]), np.bool_)
        is_taken[flat] = True
        taken = np.flatnonzero(is_taken).astype(np.int32)
        if flat.min() < 0 or taken.size < flat.size:
            self._emit(node, ir.Gather(index=flat.reshape(index.shape)), (lies.source,), None)
            return
        rank = unless_in_order(np.cumsum(is_taken, dtype=np.int32)[flat] - 1)
        if flat.size == is_taken.size:
            self._lies[node.output] = _Lies(lies.source, rank)
        else:
            op = taking(taken, form, index.shape if rank is None else None)
            self._emit(node, op, (lies.source,), rank)

    def _are_alike(self, node: GraphNode) -> bool:
        """Whether the operands of a node have one shape, so that any order of it will do."""
        a, b = (self._graph.shapes[name] for name in node.inputs)
        return a == b

    def _combine(self, node: GraphNode) -> None:
        """Both operands in the order of one of them."""
        shape = self._graph.shapes[node.output]
        a, b = (self._lies[name] for name in node.inputs)
        kept = self._better(node, a, b)
        index, form = kept.places(shape), self._shapes[kept.source][1:]
        operands = []
        for lies in (a, b):
            places = lies.places(shape)
            if np.array_equal(places, index):
                operands.append(self._shaped(lies.source, form))
            else:
                there = places.reshape(-1)[inverse(index)].reshape(form)
                operands.append(
                    self._beside(f"{lies.source}.like", ir.Gather(index=there), lies.source)
                )
        self._emit(node, node.op, tuple(operands), kept.index)

    def _better(self, node: GraphNode, a: _Lies, b: _Lies) -> _Lies:
        """The operand whose order suits more readers of the result, else one that is moved."""
        moved_first = sorted((a, b), key=lambda lies: lies.index is None)
        if a.index is b.index is None:
            return moved_first[0]
        ends, shape = self._paths.behind(node.output), self._graph.shapes[node.output]
        return max(moved_first, key=lambda lies: suited(ends, lies.places(shape)))

    def _per_channel(self, node: GraphNode, op: ir.Affine | ir.Slopes) -> None:
        """Constants of the result's channels become those of the computed tensor's."""
        shape, lies = self._graph.shapes[node.output], self._lies[node.inputs[0]]
        form, places = self._shapes[lies.source][1:], lies.places(shape)
        back = inverse(places)

        def there(values: FloatArray) -> FloatArray:
            whole = np.broadcast_to(values.reshape(-1, *(1,) * (len(shape) - 2)), shape[1:])
            return whole.reshape(-1)[back].reshape(form)

        constants = [there(values) for values in constants_of(op)]
        varied = {axis for each in constants for axis in varied_axes(each)}
        last = max(varied, default=0)
        if varied == {last} and last:
            turned = np.moveaxis(np.arange(back.size, dtype=np.int32).reshape(form), last, 0)
            source = self._beside(f"{lies.source}.turned", ir.Gather(index=turned), lies.source)
            constants = [np.moveaxis(each, last, 0) for each in constants]
            places, last = inverse(turned)[places], 0
        else:
            lanes = math.prod(form[: last + 1])
            source = self._shaped(lies.source, (lanes, *form[last + 1 :]))
        channels = self._shapes[source][1]
        values = [each.reshape(channels, -1)[:, 0] for each in constants]
        self._emit(node, with_constants(op, values), (source,), unless_in_order(places))

    def _along_axes(self, node: GraphNode, op: ir.Reduce | ir.Normalize | ir.Softmax) -> None:
        """The axes of the computed tensor that an operator works along."""
        lies, shape = self._lies[node.inputs[0]], self._graph.shapes[node.inputs[0]]
        found = None if lies.index is None else rearrangement_of(lies.places(shape))
        there = None if found is None else along_there(op, found)
        if found is None or there is None:
            self._emit(node, op, (self._moved(node.inputs[0]),), None)
            return
        source = self._shaped(lies.source, found.split)
        after = found.places(result_shape(there, [self._shapes[source]])[1:])
        self._emit(node, there, (source,), unless_in_order(after))

    def _pixels(self, node: GraphNode, op: ir.Conv2d) -> IndexArray | None:
        """The order of the pixels that a convolution of one pixel reads, if it alone differs."""
        lies, shape = self._lies[node.inputs[0]], self._graph.shapes[node.inputs[0]]
        if lies.index is None or op.window != Window(kernel=(1, 1)):
            return None
        places = lies.places(shape).reshape(shape[1], -1)
        channels = np.arange(shape[1], dtype=np.int32)[:, None] * places.shape[1]
        return places[0] if np.array_equal(places, channels + places[0]) else None

    def _pointwise(self, node: GraphNode, op: ir.Conv2d, pixels: IndexArray) -> None:
        """A convolution of pixels in the order in which they are."""
        _, channels, *_ = self._graph.shapes[node.inputs[0]]
        source = self._shaped(self._lies[node.inputs[0]].source, (channels, pixels.size, 1))
        results = np.arange(op.weight.shape[0], dtype=np.int32)[:, None] * pixels.size + pixels
        self._emit(node, op, (source,), unless_in_order(results))
