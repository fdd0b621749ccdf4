"""The integer form of one operator at given scales: a rule for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driver.network.graph import ir
from driver.network.graph.ir import FloatArray, Shape
from driver.network.integer import qir
from driver.network.quantize.fixed_point_requantization import multiplied_parameters
from driver.network.quantize.integer_weights import added_noise, exact_out_scales
from driver.network.quantize.power_of_two_requantization import (
    BYTES,
    INT8,
    LARGEST_INPUT,
    MAX_MUL,
    MAX_SHIFT,
    WIDE,
    LargestMagnitudes,
    LayerParameters,
    bounds,
    layer_parameters,
    least_out_scale,
    mean_parameters,
    product_parameters,
    rescale_parameters,
    sum_parameters,
)
from driver.network.quantize.tables import factor_table, slopes_table, unary_table


@dataclass(frozen=True, slots=True)
class IntegerForm:
    """What became of one operator: its integer form and the scale of its result."""

    op: qir.QuantOperator
    scale: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleContext:
    """What a rule knows of its place: scales and shape of the operands, the scale that is wanted.

    `block` is the number of channels in a vector of the target. A result that `may_be_coarser` may
    have a larger scale for the sake of the weights, see `quantize.integer_weights`. Where sums
    are `multiplied`, scales stay as wanted; weights that `were_whole` may stay so. No shift behind
    sums of weights is above `max_shift`. Where it `is_wide`, weights have 16 bits; `largest` says
    where activations have them. Neither goes with factors.
    """

    in_scales: tuple[float, ...]
    in_shape: Shape
    wanted: float
    block: int
    may_be_coarser: bool = False
    multiplied: bool = False
    were_whole: bool = False
    max_shift: int = MAX_SHIFT
    is_wide: bool = False
    largest: LargestMagnitudes = INT8


def rule_for(op: ir.Operator, at: RuleContext) -> IntegerForm:
    """The integer form of an operator.

    Raises:
        OverflowError: its sums cannot be kept within 32 bits.
    """
    match op:
        case ir.Conv2d() | ir.ConvTranspose2d() | ir.Dense():
            return _layer(op, at)
        case ir.Affine(weight=mul, bias=add):
            return _lanes(op, mul, add, at)
        case ir.Clip():
            ones = np.ones(at.in_shape[1], np.float32)
            return _lanes(op, ones, np.zeros_like(ones), at)
        case ir.MatMul(groups=groups, scale=scale):
            product_scale = at.in_scales[0] * at.in_scales[1] * scale
            down, out_scale = product_parameters(
                product_scale, at.in_shape[1] // groups, out_scale=at.wanted
            )
            return IntegerForm(qir.QMatMul(groups=groups, shift=down), out_scale)
        case ir.Add(lo=lo, hi=hi, subtracts=subtracts):
            total = sum_parameters(at.in_scales[0], at.in_scales[1], at.wanted)
            low, high = bounds(lo, hi, total.out_scale)
            mul_a, mul_b, shift = total.mul_a, total.mul_b, total.shift
            mul_b = -mul_b if subtracts else mul_b
            sum_op = qir.QAdd(mul_a=mul_a, mul_b=mul_b, shift=shift, lo=low, hi=high)
            return IntegerForm(sum_op, total.out_scale)
        case ir.Unary():
            return IntegerForm(
                qir.QLookup(table=unary_table(op, at.in_scales[0], at.wanted)), at.wanted
            )
        case ir.Slopes():
            return IntegerForm(
                qir.QLookup(table=slopes_table(op, at.in_scales[0], at.wanted)), at.wanted
            )
        case ir.Product(divides=divides):
            factors, down = factor_table(
                at.in_scales[0], at.in_scales[1], at.wanted, divides=divides
            )
            return IntegerForm(qir.QProduct(table=factors, shift=down), at.wanted)
        case ir.Gather(index=index, fill=fill):
            (in_scale,) = at.in_scales
            whole, _ = bounds(fill, fill, in_scale)
            return IntegerForm(qir.QGather(index=index, fill=whole), in_scale)
        case ir.AvgPool2d(window=window, divisor=divisor, lo=lo, hi=hi):
            muls, shift, scale = mean_parameters(
                divisor,
                int(np.prod(window.kernel)),
                in_scale=at.in_scales[0],
                out_scale=at.wanted,
            )
            low, high = bounds(lo, hi, scale)
            return IntegerForm(
                qir.QAvgPool2d(window=window, mul=muls, shift=shift, lo=low, hi=high), scale
            )
        case ir.MaxPool2d(window=window):
            return IntegerForm(qir.QMaxPool2d(window=window), at.in_scales[0])
        case ir.Slice(start=start, stop=stop):
            return IntegerForm(qir.QSlice(start=start, stop=stop), at.in_scales[0])
    raise TypeError(f"no quantization rule for {type(op).__name__}")


def rescale_rule(in_scale: float, out_scale: float) -> IntegerForm:
    """The same values at another, larger scale, as nearly as a 7-bit multiplier has it."""
    mul, shift = rescale_parameters(in_scale, out_scale)
    return IntegerForm(qir.QRescale(mul=mul, shift=shift), out_scale)


def _layer(op: ir.Conv2d | ir.ConvTranspose2d | ir.Dense, at: RuleContext) -> IntegerForm:
    layer, scale = _parameters(op.weight, op.bias, at)
    lo, hi = bounds(op.lo, op.hi, scale, at.largest.result)
    common: dict[str, Any] = {
        "weight": layer.weight,
        "bias": layer.bias,
        "factor": layer.factor,
        "shift": layer.shift,
        "lo": lo,
        "hi": hi,
    }
    match op:
        case ir.Conv2d(window=window, groups=groups):
            return IntegerForm(qir.QConv2d(**common, window=window, groups=groups), scale)
        case ir.ConvTranspose2d(pad=pad):
            return IntegerForm(qir.QConvTranspose2d(**common, pad=pad), scale)
    return IntegerForm(qir.QDense(**common), scale)


def _lanes(
    op: ir.Affine | ir.Clip, mul: FloatArray, add: FloatArray, at: RuleContext
) -> IntegerForm:
    layer, scale = _parameters(mul[:, None], add, at)
    lo, hi = bounds(op.lo, op.hi, scale)
    mul32 = layer.weight[:, 0].astype(np.int32)
    affine = qir.QAffine(
        weight=mul32, bias=layer.bias, shift=layer.shift, factor=layer.factor, lo=lo, hi=hi
    )
    return IntegerForm(affine, scale)


def _parameters(
    weight: FloatArray, bias: FloatArray, at: RuleContext
) -> tuple[LayerParameters, float]:
    """Integer parameters and the scale of the results."""
    (in_scale,) = at.in_scales
    bits = WIDE if at.is_wide else BYTES
    # whatever the weights, a step of an operand is no more than all of a result of 8 bits
    most = bits.most if at.largest.result > LARGEST_INPUT else MAX_MUL
    least = max(at.wanted, least_out_scale(weight, in_scale, most))
    if at.multiplied and not at.is_wide and not at.largest.is_wide:
        layer = multiplied_parameters(
            weight,
            bias,
            in_scale=in_scale,
            out_scale=least,
            block=at.block,
            were_whole=at.were_whole,
            max_shift=at.max_shift,
        )
        return layer, least

    def at_scale(scale: float) -> LayerParameters:
        return layer_parameters(
            weight,
            bias,
            in_scale=in_scale,
            out_scale=scale,
            block=at.block,
            max_shift=at.max_shift,
            bits=bits,
            largest=at.largest,
        )

    nears = at.may_be_coarser and not at.is_wide
    exact = exact_out_scales(weight, in_scale, least) if nears else ()
    choices = [(at_scale(scale), scale) for scale in (least, *exact)]
    if len(choices) == 1:
        return choices[0]
    noises = [
        added_noise(weight, layer, in_scale=in_scale, out_scale=scale) for layer, scale in choices
    ]
    return choices[int(np.argmin(noises))]
