"""Fewer, larger operators with the same results: batch norms and ReLUs join their layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from tilefarm.names import unused

from driver.network.graph import ir
from driver.network.graph.ir import Graph, GraphNode
from driver.network.graph.shapes import graph_of
from driver.network.quantize.channel_weights import read_channels
from driver.network.rewrites.equal_nodes import with_equal_nodes_merged
from driver.network.rewrites.function_fusion import with_composed_functions
from driver.network.rewrites.normalization_fusion import with_whole_normalizations
from driver.network.rewrites.operand_swap import with_products_turned
from driver.network.rewrites.padding_fusion import with_padding_in_windows
from driver.network.rewrites.scaled_products import only_scales, with_scales_in_products
from driver.network.rewrites.transpose_sinking import with_late_moves


def fold(graph: Graph) -> Graph:
    """The graph after every rule was applied wherever it fits; same inputs and outputs."""
    graph = with_equal_nodes_merged(without_idle_nodes(without_dead_nodes(graph)))
    graph = with_composed_functions(with_whole_normalizations(graph))
    graph = with_late_moves(with_products_turned(without_dead_nodes(graph)))
    graph = with_clips_before_joins(with_nested_joins(graph))
    while (smaller := _one_round(graph)) is not None:
        graph = smaller
    return with_names_apart(with_scales_in_products(with_padding_in_windows(graph)))


def tidied(graph: Graph) -> Graph:
    """The graph without idle and dead nodes, its moves late: all else computes as before."""
    graph = with_late_moves(with_products_turned(without_idle_nodes(without_dead_nodes(graph))))
    return with_names_apart(without_idle_nodes(without_dead_nodes(graph)))


def with_names_apart(graph: Graph) -> Graph:
    """The graph where every node has a name of its own, which moving and joining nodes may cost."""
    taken: set[str] = set()
    nodes = []
    for node in graph.nodes:
        name = unused(node.name, taken)
        taken.add(name)
        nodes.append(replace(node, name=name))
    return graph_of(graph.name, graph.inputs, graph.outputs, nodes)


def with_clips_before_joins(graph: Graph) -> Graph:
    """The graph where no clip stands directly behind a concatenation that it alone reads.

    clip(concat(a, b))  ->  concat(clip(a), clip(b)), where the clips join the layers before them

    Of slices, which may be parts of one tensor, a clip behind the concatenation is one instead of
    many.
    """
    slices = {node.output for node in graph.nodes if isinstance(node.op, ir.Slice)}
    clips = {
        join.output: clip
        for join, clip in _pairs(graph)
        if isinstance(join.op, ir.Concat)
        and isinstance(clip.op, ir.Clip)
        and not slices.intersection(join.inputs)
    }
    nodes: list[GraphNode] = []
    for node in graph.nodes:
        if node.output in clips:
            clip = clips[node.output]
            bounded = {name: f"{clip.output}.{name}" for name in node.inputs}
            for name, output in bounded.items():
                part = replace(clip, name=f"{clip.name}.{name}", inputs=(name,), output=output)
                nodes.append(part)
            inputs = tuple(bounded[name] for name in node.inputs)
            nodes.append(replace(node, inputs=inputs, output=clip.output))
        elif node not in clips.values():
            nodes.append(node)
    return graph_of(graph.name, graph.inputs, graph.outputs, nodes)


def with_nested_joins(graph: Graph) -> Graph:
    """The graph where a concatenation that begins like an earlier one reads that one's result.

    concat(a, b), concat(a, b, c)  ->  j = concat(a, b), concat(j, c)

    Networks that join everything so far again and again would need a copy of `a` each time.
    """
    known: dict[tuple[str, ...], str] = {}
    nodes = []
    for node in graph.nodes:
        if isinstance(node.op, ir.Concat):
            inputs = node.inputs
            longest = max((k for k in known if inputs[: len(k)] == k), key=len, default=None)
            if longest is not None and len(longest) < len(inputs):
                node = replace(node, inputs=(known[longest], *inputs[len(longest) :]))
            known.setdefault(inputs, node.output)
        nodes.append(node)
    return graph_of(graph.name, graph.inputs, graph.outputs, nodes)


def without_dead_nodes(graph: Graph) -> Graph:
    """The graph without the nodes that no output needs."""
    needed = {output.tensor for output in graph.outputs}
    kept = []
    for node in reversed(graph.nodes):
        if node.output in needed:
            needed.update(node.inputs)
            kept.append(node)
    return graph_of(graph.name, graph.inputs, graph.outputs, reversed(kept))


def without_idle_nodes(graph: Graph) -> Graph:
    """The graph without what gives its operand back: factors of 1, clips without bounds."""
    while idle := _idle(graph):
        graph = _without(graph, idle)
    return graph


def _idle(graph: Graph) -> dict[str, GraphNode]:
    """Nodes that do nothing, by their results; none reads another one's."""
    idle: dict[str, GraphNode] = {}
    inputs = {each.name for each in graph.inputs}
    outputs = {output.tensor for output in graph.outputs}
    for node in graph.nodes:
        if node.inputs[0] in inputs and node.output in outputs:
            continue  # an output is never the input itself
        if node.inputs[0] not in idle and _does_nothing(node, graph):
            idle[node.output] = node
    return idle


def merge(first: ir.Operator, second: ir.Operator) -> tuple[ir.Operator, ...] | None:
    """What `second(first(x))` can be replaced with, in order; None where no rule fits.

    The intermediate result must have no other reader.
    """
    match first, second:
        case _, ir.Affine() if isinstance(first, ir.Layer | ir.Affine) and _unbounded(first):
            return (_scaled(first, second),)
        case ir.MatMul(), ir.Affine() if only_scales(second):
            return (replace(first, scale=first.scale * float(second.weight[0])),)
        case ir.Affine(), ir.Dense() if _unbounded(first):
            weight = second.weight * first.weight[None, :]
            added = (second.weight * first.bias).sum(axis=1)
            return (replace(second, weight=weight, bias=second.bias + added),)
        case ir.Affine(), ir.Conv2d() if _unbounded(first) and _passes_padding(first, second):
            return (_after_scaling(first, second),)
        case ir.Affine(weight=mul), ir.Reshape(shape=shape) if shape[0] == len(mul):
            return (second, first)  # towards its layer
        case _, ir.Clip() if isinstance(first, ir.Clipped | ir.Clip):
            return (_bounded(first, second),)
        case ir.MaxPool2d() | ir.Reshape() | ir.Slice(), ir.Clip():
            return (second, first)  # monotone, so the clip may come first
        case ir.Reshape(), ir.Reshape() | ir.Gather():
            return (second,)
        case ir.Gather(index=index), ir.Reshape(shape=shape):
            return (ir.Gather(index=index.reshape(shape)),)
        case ir.Gather(), ir.Gather():
            return (_gathered_twice(first, second),)
        case ir.Gather(index=index), ir.Clip(lo=lo, hi=hi) if lo <= 0 <= hi or index.min() >= 0:
            return (second, first)
        case ir.Slice(), ir.Slice():
            start = first.start
            return (ir.Slice(start=start + second.start, stop=start + second.stop),)
    return None


def _gathered_twice(first: ir.Gather, second: ir.Gather) -> ir.Gather:
    """Places of the second among those of the first."""
    index = first.index.reshape(-1)[np.maximum(second.index, 0)]
    return ir.Gather(index=np.where(second.index < 0, np.int32(-1), index))


def _one_round(graph: Graph) -> Graph | None:
    """The graph after the rules that fit, at nodes apart from one another, or None."""
    idle = _idle(graph)
    if idle:
        return _without(graph, idle)
    replaced: dict[GraphNode, tuple[GraphNode, ...]] = {}
    for first, second in _pairs(graph):
        ops = None if first in replaced else merge(first.op, second.op)
        if ops is not None:
            replaced |= {first: (), second: _replacement(first, second, ops)}
    if not replaced:
        return None
    nodes = [kept for node in graph.nodes for kept in replaced.get(node, (node,))]
    return graph_of(graph.name, graph.inputs, graph.outputs, nodes)


def _pairs(graph: Graph) -> Iterator[tuple[GraphNode, GraphNode]]:
    """Every node with its producer, where it is the producer's only reader."""
    producers = {node.output: node for node in graph.nodes}
    outputs = {output.tensor for output in graph.outputs}
    users = graph.users()
    for node in graph.nodes:
        source = node.inputs[0]
        alone = len(node.inputs) == 1 and len(users[source]) == 1 and source not in outputs
        if alone and source in producers:
            yield producers[source], node


def _replacement(
    first: GraphNode, second: GraphNode, ops: tuple[ir.Operator, ...]
) -> tuple[GraphNode, ...]:
    """The nodes in the place of two."""
    if len(ops) == 1:
        layer = second if isinstance(second.op, ir.Layer) else first
        is_part = layer.name.startswith(f"{second.name}.")
        name = second.name if is_part else layer.name
        return (GraphNode(name=name, op=ops[0], inputs=first.inputs, output=second.output),)
    return (
        GraphNode(name=second.name, op=ops[0], inputs=first.inputs, output=first.output),
        GraphNode(name=first.name, op=ops[1], inputs=(first.output,), output=second.output),
    )


def _does_nothing(node: GraphNode, graph: Graph) -> bool:
    match node.op:
        case ir.Reshape():
            return graph.shapes[node.inputs[0]] == graph.shapes[node.output]
        case ir.Gather(index=index):
            same = graph.shapes[node.inputs[0]] == graph.shapes[node.output]
            return same and np.array_equal(index.reshape(-1), np.arange(index.size))
        case ir.Clip(lo=lo, hi=hi):
            return lo == -np.inf and hi == np.inf
        case ir.Affine(weight=mul, bias=add):
            return _unbounded(node.op) and bool((mul == 1).all() and (add == 0).all())
    return False


def _without(graph: Graph, gone: Mapping[str, GraphNode]) -> Graph:
    """The graph without nodes, by their results, whose readers read what these do."""

    def renamed(name: str) -> str:
        return gone[name].inputs[0] if name in gone else name

    nodes = [
        replace(node, inputs=tuple(map(renamed, node.inputs)))
        for node in graph.nodes
        if node.output not in gone
    ]
    outputs = [replace(output, tensor=renamed(output.tensor)) for output in graph.outputs]
    return graph_of(graph.name, graph.inputs, outputs, nodes)


def _unbounded(op: ir.Clipped) -> bool:
    return op.lo == -np.inf and op.hi == np.inf


def _passes_padding(first: ir.Affine, second: ir.Conv2d) -> bool:
    """Padding is zero after the scaling too: nothing is padded, or nothing is added."""
    return not any(second.window.pad) or bool((first.bias == 0).all())


def _after_scaling(first: ir.Affine, layer: ir.Conv2d) -> ir.Conv2d:
    """conv(x * mul + add) = conv'(x): every group scales the channels that it reads."""
    channels = read_channels(layer)
    added = (layer.weight.sum(axis=(2, 3)) * first.bias[channels]).sum(axis=1)
    weight = layer.weight * first.weight[channels][:, :, None, None]
    return replace(layer, weight=weight, bias=layer.bias + added)


def _scaled(layer: ir.Layer | ir.Affine, after: ir.Affine) -> ir.Operator:
    mul = after.weight.reshape(-1, *(1,) * (layer.weight.ndim - 1))
    return replace(
        layer,
        weight=layer.weight if (mul == 1).all() else layer.weight * mul,
        bias=layer.bias * after.weight + after.bias,
        lo=after.lo,
        hi=after.hi,
    )


def _bounded(first: ir.Clipped | ir.Clip, second: ir.Clip) -> ir.Operator:
    """clip(clip(x, a, b), c, d) = clip(x, clip(a, c, d), clip(b, c, d))"""
    lo, hi = (min(max(bound, second.lo), second.hi) for bound in (first.lo, first.hi))
    return replace(first, lo=lo, hi=hi)
