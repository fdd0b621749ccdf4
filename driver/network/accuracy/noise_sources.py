"""Where the noise of each layer comes from: what came before, weights, rounding, clipping.

Between a float layer f(x, w) and what the integers make of it lie three steps, each with an error:

    f(x, w)  -- before -->  f(x', w)  -- weights -->  f(x', w')  -- rounding or clipping -->  y'

x' and y' are the reals that the integer tensors stand for, w' those of the integer weights and
biases. The last step is clipping where f(x', w') is beyond what the tensor can say, which has 8 or
16 bits, otherwise rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.dtype import DType

from driver.network.graph.float_run import apply, run_float
from driver.network.graph.ir import (
    Affine,
    Conv2d,
    ConvTranspose2d,
    Dense,
    FloatArray,
    Graph,
    GraphNode,
    Operator,
)
from driver.network.graph.parts import Arrays, parts_of
from driver.network.integer.noise import Noise, noise_between
from driver.network.integer.qir import (
    INT8_MAX,
    INT8_MIN,
    QAffine,
    QConv2d,
    QConvTranspose2d,
    QDense,
    QReshape,
    QuantGraph,
    QuantNode,
    QuantTensor,
)
from driver.network.integer.reference import run_integer

_SAMPLES_AT_ONCE: Final = 8
"""Every tensor of so many samples is held at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSources:
    """Sums of squared errors over all samples, one for each step.

    They overlap a little, and more where biases are corrected: what biases are changed by counts as
    an error of the weights, and takes back a part of what came before.
    """

    before: float = 0.0
    weights: float = 0.0
    rounding: float = 0.0
    clipping: float = 0.0

    @property
    def own(self) -> float:
        """What the layer itself adds."""
        return self.weights + self.rounding + self.clipping

    def shares(self) -> dict[str, float]:
        """Each of the sum of all, 0 to 1; all 0 where nothing differs."""
        total = self.before + self.own
        each = zip(("before", "weights", "rounding", "clipping"), astuple(self), strict=True)
        return {name: energy / total if total else 0.0 for name, energy in each}

    def __add__(self, other: NoiseSources) -> NoiseSources:
        return NoiseSources(
            before=self.before + other.before,
            weights=self.weights + other.weights,
            rounding=self.rounding + other.rounding,
            clipping=self.clipping + other.clipping,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorNoise:
    """The noise of one tensor; no sources where the two networks do not make it alike."""

    noise: Noise
    sources: NoiseSources | None

    def __add__(self, other: TensorNoise) -> TensorNoise:
        sources = None
        if self.sources is not None and other.sources is not None:
            sources = self.sources + other.sources
        return TensorNoise(noise=self.noise + other.noise, sources=sources)


def noise_sources(
    graph: Graph, quantized: QuantGraph, inputs: Mapping[str, FloatArray]
) -> dict[str, TensorNoise]:
    """The noise of every tensor that both networks have, by name, over samples [samples, ...].

    `graph` is the one that the integers stand for, see `quantize.float_form.float_form`. Nothing is
    told of networks in ONNX's own arithmetic, whose tensors are others than those of their graph.
    """
    if quantized.is_in_onnx_arithmetic:
        return {}
    total: dict[str, TensorNoise] = {}
    for part in parts_of(inputs, _SAMPLES_AT_ONCE):
        for name, each in _of_part(graph, quantized, part).items():
            total[name] = total[name] + each if name in total else each
    return total


def _of_part(graph: Graph, quantized: QuantGraph, inputs: Arrays) -> dict[str, TensorNoise]:
    integers = run_integer(quantized, inputs, keep=True)
    nodes = {node.output: node for node in graph.nodes}
    made = {node.output: node for node in quantized.nodes}
    found: dict[str, TensorNoise] = {}

    def real(name: str) -> NDArray[Any]:
        scale = quantized.tensors[name].scale
        return integers[name] if scale is None else integers[name].astype(np.float32) * scale

    def compare(name: str, values: FloatArray) -> None:
        if name in made and name in nodes and name in integers:
            operands = _operands(nodes[name], made[name], quantized)
            found[name] = TensorNoise(
                noise=noise_between(values, real(name)),
                sources=None
                if operands is None
                else _sources(
                    nodes[name].op, made[name], quantized, values, [real(x) for x in operands],
                    real(name),
                ),
            )  # fmt: skip

    run_float(graph, inputs, observe=compare)
    return found


def _operands(node: GraphNode, made: QuantNode, quantized: QuantGraph) -> Sequence[str] | None:
    """The integer network's tensors that a float node's operands became; None if not clear."""
    moved = isinstance(made.op, QReshape) and type(node.op).__name__ != "Reshape"
    names = node.inputs if moved or len(made.inputs) != len(node.inputs) else made.inputs
    return names if all(name in quantized.tensors for name in names) else None


def _sources(
    op: Operator,
    made: QuantNode,
    quantized: QuantGraph,
    values: FloatArray,
    operands: Sequence[NDArray[Any]],
    answer: NDArray[Any],
) -> NoiseSources:
    scale = quantized.tensors[made.output].scale
    given = quantized.tensors[made.inputs[0]].scale
    with_operands = apply(op, *operands)
    as_integers = op if scale is None or given is None else _rounded(op, made, given, scale)
    with_weights = with_operands if as_integers is op else apply(as_integers, *operands)
    last = answer.astype(np.float64) - with_weights
    beyond = np.zeros(last.shape, bool)
    if scale is not None:
        low, high = _ends(quantized.tensors[made.output])
        beyond = (with_weights > (high + 0.5) * scale) | (with_weights < (low - 0.5) * scale)
    return NoiseSources(
        before=_energy(with_operands.astype(np.float64) - values),
        weights=_energy(with_weights.astype(np.float64) - with_operands),
        rounding=_energy(last[~beyond]),
        clipping=_energy(last[beyond]),
    )


def _ends(tensor: QuantTensor) -> tuple[int, int]:
    """The least and the largest number that it holds."""
    is_wide = tensor.dtype is DType.INT16
    return (-tensor.largest, tensor.largest) if is_wide else (INT8_MIN, INT8_MAX)


def _energy(errors: NDArray[np.float64]) -> float:
    return float((errors**2).sum())


def _rounded(op: Operator, made: QuantNode, given: float, scale: float) -> Operator:
    """A layer with the weights and biases that its integers stand for; others as they are.

    Args:
        given, scale: the real value of 1 of the operand, and of the result.
    """
    match made.op:
        case QConv2d() | QConvTranspose2d() | QDense() | QAffine() as integer:
            step = _steps(integer.factor, integer.shift, scale)
            weight = integer.weight * (step / given).reshape(-1, *(1,) * (integer.weight.ndim - 1))
            bias = _bias(integer.bias, integer.shift, step, scale)
            if isinstance(op, Conv2d | ConvTranspose2d | Dense | Affine):
                return replace(op, weight=weight.astype(np.float32), bias=bias)
    return op


def _steps(factor: NDArray[Any] | None, shift: NDArray[Any], scale: float) -> NDArray[np.float64]:
    """The real value of 1 in the sums of each channel."""
    step = scale * np.exp2(-shift.astype(np.float64))
    return np.asarray(step if factor is None else step * factor)


def _bias(
    bias: NDArray[Any], shift: NDArray[Any], step: NDArray[np.float64], scale: float
) -> FloatArray:
    """Without the half that makes the shift round."""
    half = np.where(shift > 0, 0.5 * scale, 0.0)
    return np.asarray(bias * step - half, np.float32)
