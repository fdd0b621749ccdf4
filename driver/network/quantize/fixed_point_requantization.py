"""Integer parameters whose requantization is a multiplication and a shift, for targets with MUL.

With input scale si and output scale so, the weight scale of channel c is (so / si) * f[c] * 2^-s.
Then sum * si * weight_scale / so = sum * f[c] * 2^-s: `(sum * f[c]) >> s`, as exact as a shift
alone (`power_of_two_requantization`) for any si and so. There a step from one weight scale to the
next is a factor of two, which costs up to one bit of the weights' range; here it is one part in
f[c].

The channels of a block share the shift, an immediate operand; factors differ by lane and are read
from a register. The shift is the largest with which no product leaves int32 whatever the input: the
finest factors.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driver.network.graph.ir import FloatArray
from driver.network.quantize.integer_weights import unit_of
from driver.network.quantize.power_of_two_requantization import (
    ACC_LIMIT,
    ENOUGH_SHIFT,
    LARGEST_INPUT,
    MAX_MUL,
    MAX_SHIFT,
    LayerParameters,
    most_bias,
    of_blocks,
    within_reach,
)
from driver.network.quantize.weight_chunks import bands

Reals: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_ACC_BITS: Final = 31


def multiplied_parameters(
    weight: FloatArray,
    bias: FloatArray,
    *,
    in_scale: float,
    out_scale: float,
    block: int,
    were_whole: bool = False,
    max_shift: int = MAX_SHIFT,
) -> LayerParameters:
    """Integer parameters of a layer with factors; `weight` is [Co, ...], `bias` [Co] in real units.

    Blocks of channels know nothing of one another.

    Where the weights `were_whole`, those of a channel are multiples of one number: they are kept as
    these multiples where its nearest factor is closer than rounding them again. Factors are larger
    than the weights need where the bias fits into `most_bias` then, at no loss that shows. No shift
    is above `max_shift`.

    Raises:
        OverflowError: even without a shift the worst sum leaves int32.
    """
    flat, offset = weight.reshape(len(weight), -1), bias.astype(np.float64) / out_scale
    layers = [
        _some_rows(
            flat[band].astype(np.float64) * (in_scale / out_scale),
            offset[band],
            block,
            were_whole=were_whole,
            max_shift=max_shift,
        )
        for band in bands(weight, block)
    ]
    whole, biases, shift, factor = map(np.concatenate, zip(*layers, strict=True))
    return LayerParameters(
        weight=whole.reshape(weight.shape), bias=biases, shift=shift, factor=factor
    )


def _some_rows(
    rows: Reals, offset: Reals, block: int, *, were_whole: bool, max_shift: int
) -> tuple[NDArray[np.int8], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Weights, biases, shifts and factors of some blocks of channels, in the result's steps.

    Raises:
        OverflowError: even without a shift the worst sum leaves int32.
    """
    offsets = within_reach(rows, offset)
    units = _units(rows) if were_whole else None
    shift = _first_shifts(rows, offsets, block, max_shift)
    while True:
        least = _least_factors(offsets, shift, most_bias(block))
        factor, whole = _nearest(rows, shift, least, units)
        biases = _biases(offsets, factor, shift)
        over = of_blocks(_worst(whole, biases) * factor >= ACC_LIMIT, block, np.logical_or)
        if not over.any():
            break
        if (shift[over] == 0).any():
            raise OverflowError("its worst sum does not fit into the 32-bit accumulator")
        shift = shift - over
    return (
        whole.astype(np.int8),
        biases.astype(np.int32),
        shift.astype(np.int32),
        factor.astype(np.int32),
    )


def _first_shifts(rows: Reals, offsets: Reals, block: int, max_shift: int) -> Integers:
    """Shifts to begin with, the same in a block: the worst results times 2^s are about int32."""
    worst = np.abs(rows).sum(axis=1) * LARGEST_INPUT + np.abs(offsets)
    bits = np.ceil(np.log2(np.maximum(worst, 2.0**-MAX_SHIFT)))
    fit = np.clip(_ACC_BITS - bits + 1, 0, max_shift).astype(np.int64)
    return of_blocks(fit, block)


def _units(rows: Reals) -> Reals:
    """[Co]: the number of which a channel's weights are multiples; 0 where there is none."""
    found = (unit_of(row) for row in rows)
    return np.array([unit or 0.0 for unit in found])


def _least_factors(offsets: Reals, shift: Integers, most: int) -> Reals:
    """Factors with which biases are at most `most`, but none that the results would show."""
    fitting = np.ceil((np.abs(offsets) + 0.5) * np.exp2(shift) / most)
    return np.maximum(np.minimum(fitting, np.exp2(shift - ENOUGH_SHIFT)), 1.0)


def _nearest(
    rows: Reals, shift: Integers, least: Reals, units: Reals | None
) -> tuple[Integers, Integers]:
    """Factors [Co] and whole weights [Co, K], weight * factor / 2^shift being nearest to `rows`.

    No factor is below its `least`.
    """
    scaled = rows * np.exp2(shift)[:, None]
    factor = np.maximum(np.ceil(np.abs(scaled).max(axis=1) / MAX_MUL), least)
    whole = _whole(scaled, factor)
    if units is not None:
        kept = np.maximum(np.rint(units * np.exp2(shift)), least)
        multiples = _whole(scaled, kept)
        better = _misses(scaled, multiples, kept) < _misses(scaled, whole, factor)
        factor = np.where(better, kept, factor)
        whole = np.where(better[:, None], multiples, whole)
    return factor.astype(np.int64), whole.astype(np.int64)


def _whole(scaled: Reals, factor: Reals) -> Reals:
    return np.clip(np.rint(scaled / factor[:, None]), -MAX_MUL, MAX_MUL)


def _misses(scaled: Reals, whole: Reals, factor: Reals) -> Reals:
    """By channel, the energy of what the whole weights are wrong by."""
    return np.asarray(np.square(whole * factor[:, None] - scaled).sum(axis=1))


def _biases(offsets: Reals, factor: Integers, shift: Integers) -> Integers:
    """Biases in units of the accumulator, with what makes the shift round to nearest."""
    half = np.where(shift > 0, np.exp2(shift - 1.0), 0.0)
    return np.rint((offsets * np.exp2(shift) + half) / factor).astype(np.int64)


def _worst(whole: Integers, biases: Integers) -> Integers:
    """By channel, the largest magnitude of sum and bias that int8 operands can make."""
    return np.asarray(LARGEST_INPUT * np.abs(whole).sum(axis=1) + np.abs(biases))
