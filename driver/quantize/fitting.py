"""The integer network of a target: as wide as its vectors, with shifts and MUL that it has."""

from __future__ import annotations

from collections.abc import Mapping

from tilefarm.errors import SettingsError
from tilefarm.target import TARGETS, Target

from driver.graph.ir import FloatArray, Graph
from driver.integer.qir import QuantGraph
from driver.quantize.options import Quantization
from driver.quantize.quantizer import quantize
from driver.quantize.shift_exact import MAX_SHIFT


def quantize_for(
    target: Target,
    graph: Graph,
    calibration: FloatArray | Mapping[str, FloatArray] | None,
    how: Quantization,
) -> QuantGraph:
    """`driver.quantize.quantizer.quantize` for a target.

    Raises:
        SettingsError: the target's ALU lacks what is wanted, or as for `quantize`.
        ModelError, DataError: as for `quantize`.
    """
    if how.requantize == "mul" and not target.limits.alu_mul:
        known = ", ".join(name for name, each in TARGETS.items() if each.limits.alu_mul)
        raise SettingsError(
            f"--requantize mul: the ALU of {target.name} has no MUL",
            f"--target {known}, a target whose JSON has limits.alu_mul, or --requantize shift",
        )
    most = min(target.limits.max_shift, MAX_SHIFT)
    return quantize(graph, calibration, how, block=target.vta.block, max_shift=most)
