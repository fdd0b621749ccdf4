"""A network that stays in float32: every operator as kernels of the processor on floats.

Nothing is rounded but by float32 itself, in the order that `driver.network.integer.real` defines,
so that the program's bits are those of its reference here too.
"""

from __future__ import annotations

from typing import Final

from tilefarm.errors import ModelError, SettingsError
from tilefarm.target import Target

from driver.network.graph import ir
from driver.network.graph.ir import Graph
from driver.network.integer.qir import QuantGraph
from driver.network.quantize.extremes import with_extremes
from driver.network.quantize.floats import has_no_kernel
from driver.network.quantize.processor_quantization import has_own_arithmetic
from driver.network.quantize.quantizer import quantize_with

_ALL: Final = ("*",)


def float_network(graph: Graph, target: Target) -> QuantGraph:
    """The network with all of its operators in float32.

    Raises:
        SettingsError: the target has an accelerator, which has no floats.
        ModelError: an operator has no form in float32, or the file's arithmetic is of integers.
    """
    if target.has_accelerator:
        raise SettingsError(
            f"--float: {target.name} has an accelerator, and that computes integers",
            "--target cpu",
        )
    reasons = [
        f"{node.name}: {why}"
        for node in graph.nodes
        if not isinstance(node.op, ir.Reshape) and (why := has_no_kernel(node.op))
    ]
    if has_own_arithmetic(graph) or graph.ranges:
        reasons = ["the model was quantized before, and its arithmetic is of integers"]
    if reasons:
        why = "; ".join(reasons)
        raise ModelError(f"--float: {why}", "leave --float out")
    graph = with_extremes(graph)
    return quantize_with(graph, dict.fromkeys(graph.shapes, 1.0), keep_float=_ALL)
