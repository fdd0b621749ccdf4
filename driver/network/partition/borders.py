"""Borders that are stored: a layer writes into the middle of an image that the next one pads.

    layer -> t [8, 8]; gather: t with bytes around it [10, 10]; layer, pad 0
->  border: bytes around t [10, 10], layer -> the middle of it; layer, pad 0

The gather copies the whole tensor on the processor; a border is a few rows and columns of it. It
needs nothing, so the processor makes it when it has something to do anyway, and the layers around
it still run one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tilefarm.dtype import DType

from driver.network.integer.network import NetworkStep
from driver.network.integer.qir import QAffine, QConv2d, QGather, QuantGraph
from driver.network.rewrites.padding_fusion import Pad, padding_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Border:
    """The tensor `around` has another in its middle, and bytes `fill` in `pad` around it."""

    around: str
    pad: Pad
    fill: int


def with_early_borders(steps: Iterable[NetworkStep]) -> tuple[NetworkStep, ...]:
    """The steps in an order in which no border alone comes between steps of the accelerator.

    cpu a, accelerator b, border c, accelerator d  ->  cpu a, border c, accelerator b, d
    """
    done: list[NetworkStep] = []
    after_processor = 0
    for step in steps:
        is_border = step.workload.operator == "border"
        done.insert(after_processor if is_border else len(done), step)
        if is_border:
            after_processor += 1
        elif step.place == "cpu":
            after_processor = len(done)
    return tuple(done)


def plan_borders(graph: QuantGraph) -> Mapping[str, Border]:
    """The borders that can be stored, by what a layer makes, which nobody else reads."""
    outputs = {output.tensor for output in graph.outputs}
    makers = {node.output: node for node in graph.nodes}
    readers = Counter(name for node in graph.nodes for name in node.inputs)
    found = {}
    for node in graph.nodes:
        if not isinstance(node.op, QGather) or node.inputs[0] not in makers:
            continue
        (name,) = node.inputs
        pad = padding_of(node.op.index, graph.tensors[name].shape)
        is_made = (
            isinstance(makers[name].op, QConv2d | QAffine)
            and graph.tensors[name].dtype is DType.INT8
        )
        if is_made and pad is not None and readers[name] == 1 and name not in outputs:
            found[name] = Border(around=node.output, pad=pad, fill=node.op.fill)
    return found
