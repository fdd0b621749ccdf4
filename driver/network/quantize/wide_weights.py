"""Which layers have weights of 16 bits instead of 8.

Eight bits for each weight are what costs some networks most of their accuracy, small ones with
weights of unlike sizes above all. A convolution and a dense layer can have 16: two planes of int8,
high and low, whose sums the accelerator joins. GEMM takes twice as long for it; the activations
stay int8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from driver.network.graph.ir import Affine, Conv2d, ConvTranspose2d, Dense, Graph, Operator
from driver.network.quantize.layer_selection import named


def wide_nodes(graph: Graph, patterns: Sequence[str], floats: Mapping[str, str]) -> frozenset[str]:
    """The names of the nodes whose weights have 16 bits.

    Args:
        graph: a float network.
        patterns: names of nodes; `*`, `?` and `[...]` as in file names.
        floats: the nodes that stay in float, with the reasons; patterns leave them out.

    Raises:
        SettingsError: no node has a name, or one cannot have such weights; all such are listed.
    """
    lacking = {node.name: has_no_wide_form(node.op) for node in graph.nodes}
    for name in floats.keys() & {*patterns}:
        lacking[name] = f"stays in float: {floats[name]}"
    return frozenset(named("--wide-weights", patterns, lacking)) - floats.keys()


def has_no_wide_form(op: Operator) -> str:
    """Why an operator cannot have weights of 16 bits; empty if it can."""
    match op:
        case Dense() | Conv2d():
            return ""
        case ConvTranspose2d():
            return "a transposed convolution has weights of 8 bits only"
        case Affine():
            return "factors of channels have 8 bits only"
    return f"{type(op).__name__} has no weights"
