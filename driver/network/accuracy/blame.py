"""Which layers put the noise into a network, and by what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from driver.network.accuracy.noise_sources import TensorNoise
from driver.network.integer.qir import QuantGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class Blamed:
    """A layer that adds noise.

    Attributes:
        share: of all that layers add, each by the signal of its result; 0 to 1.
        weights: of the same, what its weights add; rounding: what rounding its result does.
        source: what most of its share is: weights, rounding or clipping.
        macs: multiply-accumulates of the layer.
    """

    name: str
    share: float
    weights: float
    rounding: float
    source: str
    macs: int

    def words(self) -> str:
        """The layer, and what it does, in few words."""
        return f"{self.name} ({self.source}, {100 * self.share:.0f} % of the noise)"


def blamed(
    noise: Mapping[str, TensorNoise], quantized: QuantGraph, macs: Mapping[str, int]
) -> list[Blamed]:
    """The layers that add noise, the worst first.

    What a layer adds by its signal goes through the network much as it is: the ratio of a tensor is
    that of what it was made from, and some more. So these shares say what to mend first.

    Args:
        macs: multiply-accumulates of each layer.
    """
    names = {node.output: node.name for node in quantized.nodes}
    added = {
        output: each.sources.own / each.noise.signal
        for output, each in noise.items()
        if each.sources is not None and each.noise.signal and each.sources.own
    }
    total = sum(added.values())
    found = []
    for output, ratio in added.items():
        shares = _own_shares(noise[output])
        part = ratio / total / sum(shares.values())
        found.append(
            Blamed(
                name=names[output],
                share=ratio / total,
                weights=part * shares["weights"],
                rounding=part * shares["rounding"],
                source=max(shares, key=lambda name: shares[name]),
                macs=macs.get(names[output], 0),
            )
        )
    return sorted(found, key=lambda each: -each.share)


def _own_shares(noise: TensorNoise) -> dict[str, float]:
    shares = noise.sources.shares() if noise.sources else {}
    return {name: share for name, share in shares.items() if name != "before"}
