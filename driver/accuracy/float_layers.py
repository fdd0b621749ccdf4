"""The search for layers that stay in float: as cheap as possible, and the promise is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from driver.accuracy.blame import Blamed

_MOST_DROPS: Final = 6
"""Layers that are tried without, each at the cost of one more network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Layers in float, and what it comes to.

    Attributes:
        points: that are lost.
        macs: multiply-accumulates in float on the processor.
    """

    names: tuple[str, ...]
    points: float
    macs: int


def float_layers(
    layers: Sequence[Blamed], lost: Callable[[tuple[str, ...]], float], limit: float
) -> list[Plan]:
    """Plans that were tried; the cheapest that loses at most `limit` points is `best_plan`.

    Layers are taken in their order, twice as many each time, until the limit is kept; bisection
    finds the fewest, and then the dearest ones are tried without. Nothing is tried twice.

    Args:
        layers: candidates, those first that are worth most, see `driver.accuracy.blame.by_cost`.
        lost: points that the network loses with these layers in float.
    """
    tried: dict[frozenset[str], Plan] = {}

    def keeps(chosen: Sequence[Blamed]) -> bool:
        key = frozenset(each.name for each in chosen)
        if key not in tried:
            names = tuple(each.name for each in chosen)
            macs = sum(each.macs for each in chosen)
            tried[key] = Plan(names=names, points=lost(names), macs=macs)
        return tried[key].points <= limit

    enough, too_few = _first_that_keeps(layers, keeps)
    if enough is not None:
        while enough - too_few > 1:
            middle = (enough + too_few) // 2
            if keeps(layers[:middle]):
                enough = middle
            else:
                too_few = middle
        chosen = list(layers[:enough])
        for each in sorted(chosen, key=lambda layer: -layer.macs)[:_MOST_DROPS]:
            without = [layer for layer in chosen if layer is not each]
            if keeps(without):
                chosen = without
    return list(tried.values())


def best_plan(plans: Sequence[Plan], limit: float) -> Plan | None:
    """The cheapest one that keeps the limit; None where none does."""
    kept = [plan for plan in plans if plan.points <= limit]
    return min(kept, key=lambda plan: (plan.macs, len(plan.names)), default=None)


def _first_that_keeps(
    layers: Sequence[Blamed], keeps: Callable[[Sequence[Blamed]], bool]
) -> tuple[int | None, int]:
    """A number of layers that is enough, None if all are not; and the last that was not."""
    too_few, count = 0, 0
    if keeps(()):
        return 0, 0
    while count < len(layers):
        count = min(max(1, 2 * count), len(layers))
        if keeps(layers[:count]):
            return count, too_few
        too_few = count
    return None, too_few
