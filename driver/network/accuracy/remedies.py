"""What takes noise away, and what that costs: more bits, or floats.

    weights of 16 bits      the accelerator multiplies once more; noise of weights goes
    results of 16 bits      the layers that read them multiply once more; noise of rounding goes
    float on the processor  a hundred times the cycles; all noise of the layer goes
    asymmetric activations  of all layers: twice the levels, three quarters of the noise of rounding
                            go; the processor makes borders

Shifts that all channels share are the other way round: they save cycles, and add noise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from driver.network.accuracy.blame import Blamed
from driver.network.accuracy.price import cycles_in_float

Kind: TypeAlias = Literal["wide", "results", "float", "asymmetric", "shared"]

_CROSSING: Final = 0.01
"""Of the network's multiply-accumulates: what a layer costs besides its own."""
_OF_ROUNDING: Final = 0.75
"""What steps of half the size take away of its energy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One of them, for one layer or for all.

    Attributes:
        layer: its name; empty for what is done to all of them.
        share: of the network's noise that it takes away, 0 to 1.
        cycles: that it costs, about; only the order of remedies hangs on it.
        macs: multiply-accumulates that the processor does instead of the accelerator.
    """

    layer: str
    kind: Kind
    share: float = 0.0
    cycles: float = 0.0
    macs: int = 0


SHARED_SHIFTS: Final = Remedy(layer="", kind="shared")


def remedies(
    layers: Sequence[Blamed],
    *,
    wide: Collection[str],
    results: Mapping[str, int],
    floats: Collection[str],
    macs: int,
    macs_per_cycle: int,
    borders: int | None = None,
) -> list[Remedy]:
    """All of them, those first that take away most noise for their cycles.

    Args:
        layers: that add noise.
        wide: names of those whose weights can have more bits; floats: that can be in float.
        results: names of those whose results can, with the multiply-accumulates of their readers.
        macs: of the network; `macs_per_cycle`: of the accelerator.
        borders: elements of what convolutions pad; None where activations are asymmetric already.
    """
    found = []
    if borders is not None:
        share = _OF_ROUNDING * sum(each.rounding for each in layers)
        cycles = cycles_in_float(borders + 1)
        found.append(Remedy(layer="", kind="asymmetric", share=share, cycles=cycles))
    for each in layers:
        macs_and_more = each.macs + _CROSSING * macs + 1
        if each.name in wide and each.weights:
            cycles = macs_and_more / macs_per_cycle
            found.append(Remedy(layer=each.name, kind="wide", share=each.weights, cycles=cycles))
        if each.name in results and each.share > each.weights:
            cycles = (macs_and_more + results[each.name]) / macs_per_cycle
            share = each.share - each.weights
            found.append(Remedy(layer=each.name, kind="results", share=share, cycles=cycles))
        if each.name in floats:
            cycles = cycles_in_float(macs_and_more)
            found.append(
                Remedy(
                    layer=each.name, kind="float", share=each.share, cycles=cycles, macs=each.macs
                )
            )
    return sorted(found, key=lambda each: -each.share / each.cycles)
