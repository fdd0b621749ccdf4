"""Which function takes which ONNX operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

from compile_worker.plugins.operator import is_defined_elsewhere
from driver.network.frontend.call import OnnxCall, RefusedError, Result, Scope
from driver.network.frontend.constants import CONSTANT_OPERATORS
from driver.network.frontend.custom.plugins import custom_operator_of
from driver.network.frontend.custom.rule import lower_custom
from driver.network.frontend.integers import layers, qdq_pairs, qlinear
from driver.network.frontend.integers.whole_weights import in_whole_numbers
from driver.network.frontend.operators import (
    arithmetic,
    attention,
    binary,
    choosing,
    combined,
    comparisons,
    entries,
    functions,
    fused,
    gathering,
    joining,
    matrices,
    microsoft,
    moves,
    normalizing,
    one_dimensional,
    padding,
    reductions,
    reshapes,
    resizing,
    sampling,
    transposed,
    windows,
)
from driver.network.frontend.operators.one_dimensional import also_of_lines
from driver.network.frontend.steps import Composition

Rule: TypeAlias = Callable[[OnnxCall, Scope], Result | tuple[Result, ...]]

RULES: Final[Mapping[str, Rule]] = {
    "Add": binary.add,
    "AveragePool": also_of_lines(windows.average_pool),
    "BatchNormalization": arithmetic.batch_norm,
    "CastLike": arithmetic.cast_like,
    "Clip": arithmetic.clip,
    "Concat": joining.concat,
    "Conv": in_whole_numbers(also_of_lines(windows.conv)),
    "ConvTranspose": in_whole_numbers(also_of_lines(transposed.conv_transpose)),
    "DepthToSpace": moves.depth_to_space,
    "Div": binary.divide,
    "Dropout": arithmetic.dropout,
    "Einsum": matrices.einsum,
    "Expand": moves.expand,
    "Flatten": reshapes.flatten,
    "Gemm": in_whole_numbers(matrices.gemm),
    "GatherElements": moves.gather_elements,
    "GlobalAveragePool": also_of_lines(windows.global_average_pool),
    "GlobalMaxPool": also_of_lines(windows.global_max_pool),
    "Identity": arithmetic.same,
    "LogSoftmax": reductions.log_softmax,
    "MatMul": in_whole_numbers(matrices.matmul),
    "Max": binary.larger,
    "MaxPool": also_of_lines(windows.max_pool),
    "Mean": binary.mean,
    "Min": binary.smaller,
    "Mul": binary.multiply,
    "Pad": padding.pad,
    "ReduceLogSumExp": reductions.log_sum_exp,
    "Relu": arithmetic.relu,
    "Reshape": reshapes.reshape,
    "Resize": resizing.resize,
    "Slice": reshapes.slice_channels,
    "Softmax": reductions.softmax,
    "SpaceToDepth": moves.space_to_depth,
    "Split": reshapes.split,
    "Squeeze": reshapes.squeeze,
    "Sub": binary.subtract,
    "Sum": binary.add,
    "Tile": moves.tile,
    "Transpose": reshapes.transpose,
    "Unsqueeze": reshapes.unsqueeze,
    "Where": binary.where,
    "Upsample": resizing.upsample,
    **functions.RULES,
    **layers.RULES,
    **normalizing.RULES,
    **qlinear.RULES,
    **qdq_pairs.RULES,
    **gathering.RULES,
    **comparisons.RULES,
    **dict.fromkeys(reductions.KINDS, reductions.reduction),
}
"""What each operator on activations becomes, for one output or for each of several.

Operators on constants are in `constants`.
"""

COMPOSITIONS: Final[Mapping[str, Composition]] = {
    **attention.COMPOSITIONS,
    **choosing.COMPOSITIONS,
    **combined.COMPOSITIONS,
    **entries.COMPOSITIONS,
    **fused.COMPOSITIONS,
    **one_dimensional.COMPOSITIONS,
    **sampling.COMPOSITIONS,
}
"""What operators that stand for several others are written as, some of them in some forms only."""

SEVERAL_OUTPUTS: Final = frozenset(
    {"Attention", "DynamicQuantizeLinear", "If", "SkipLayerNormalization"}
    | {"SkipSimplifiedLayerNormalization", "Split"}
)
"""The operators of which several outputs may be used."""


def rule_of(call: OnnxCall) -> Rule:
    """The function that takes a call.

    Raises:
        RefusedError: it is supported on constants only.
    """
    custom = custom_operator_of(call.domain, call.operator)
    if custom is not None:
        return partial(lower_custom, custom)
    if call.domain:
        return microsoft.RULES[call.operator]
    if call.operator not in RULES:
        raise RefusedError("operator is supported on constants only")
    return RULES[call.operator]


def check_supported(call: OnnxCall) -> None:
    """Refuses operators that no rule knows.

    Raises:
        RefusedError: the operator is unknown, or one of another domain.
    """
    if custom_operator_of(call.domain, call.operator) is not None:
        return
    if call.domain == "com.microsoft" and call.operator in microsoft.RULES:
        return
    if call.domain and call.full_name in COMPOSITIONS:
        return
    if call.domain:
        by_plugin = "" if is_defined_elsewhere(call.domain) else " without a --plugin"
        raise RefusedError(f"operators of the domain {call.domain!r} are not supported{by_plugin}")
    known = (RULES, COMPOSITIONS, CONSTANT_OPERATORS, {"If"})
    if not any(call.operator in each for each in known):
        raise RefusedError("operator is not supported")
