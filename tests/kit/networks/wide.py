"""Networks in which all that can have 16 bits has them."""

from __future__ import annotations

from driver.network.graph.ir import Graph
from driver.network.quantize.options import Quantization
from driver.network.quantize.wide_activations import wide_result_reasons
from driver.network.quantize.wide_weights import has_no_wide_form


def all_wide(graph: Graph, *, weights: bool = True, activations: bool = True) -> Quantization:
    """Every weight that can have 16 bits has them, and every result, as far as wanted."""
    wide = [node.name for node in graph.nodes if weights and not has_no_wide_form(node.op)]
    able = [
        name for name, reason in wide_result_reasons(graph).items() if activations and not reason
    ]
    return Quantization(wide=tuple(wide), wide_activations=tuple(able))
