"""The search for layers that stay in float: as cheap as possible, and the promise is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from driver.accuracy.blame import Blamed

_MOST_DROPS: Final = 12
"""Attempts to do without some of the layers, each at the cost of one more network."""


_MOST_ALONE: Final = 6
"""Layers that are tried alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a network with some layers in float loses, in points, and costs, in estimated cycles."""

    points: float
    cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Layers in float, and what it comes to.

    Attributes:
        points: that are lost.
        macs: multiply-accumulates in float on the processor.
        cycles: of the whole network, estimated, see `driver.accuracy.price`.
    """

    names: tuple[str, ...]
    points: float
    macs: int
    cycles: int


def float_layers(
    layers: Sequence[Blamed], judge: Callable[[tuple[str, ...]], Outcome], limit: float
) -> list[Plan]:
    """Plans that were tried; the cheapest that loses at most `limit` points is `best_plan`.

    Layers are taken in their order, twice as many each time, until the limit is kept; bisection
    finds the fewest. Few samples make a score jump, so these may be more than needed: the first
    layers are tried alone, and if none is enough, parts are tried without. Nothing is tried twice.

    Args:
        layers: candidates, those first that are worth most, see `driver.accuracy.blame.by_cost`.
        judge: what comes of the network with these layers in float.
    """
    tried: dict[frozenset[str], Plan] = {}

    def keeps(chosen: Sequence[Blamed]) -> bool:
        key = frozenset(each.name for each in chosen)
        if key not in tried:
            names = tuple(each.name for each in chosen)
            found = judge(names)
            tried[key] = Plan(
                names=names,
                points=found.points,
                macs=sum(each.macs for each in chosen),
                cycles=found.cycles,
            )
        return tried[key].points <= limit

    enough, too_few = _first_that_keeps(layers, keeps)
    if enough is not None:
        while enough - too_few > 1:
            middle = (enough + too_few) // 2
            if keeps(layers[:middle]):
                enough = middle
            else:
                too_few = middle
        if not any(keeps([layer]) for layer in layers[: min(enough, _MOST_ALONE)]):
            _drop(list(layers[:enough]), keeps)
    return list(tried.values())


def _drop(chosen: list[Blamed], keeps: Callable[[Sequence[Blamed]], bool]) -> None:
    """Tries to do without parts: halves first, then quarters and so on, the dearest first."""
    drops, size = 0, (len(chosen) + 1) // 2
    while size and len(chosen) > 1:
        dearest = sorted(chosen, key=lambda layer: -layer.macs)
        for start in range(0, len(dearest), size):
            part = dearest[start : start + size]
            without = [layer for layer in chosen if layer not in part]
            if drops < _MOST_DROPS and 0 < len(without) < len(chosen):
                drops += 1
                chosen = without if keeps(without) else chosen
        size = min(size, len(chosen)) // 2


def best_plan(plans: Sequence[Plan], limit: float) -> Plan | None:
    """The cheapest one that keeps the limit; None where none does."""
    kept = [plan for plan in plans if plan.points <= limit]
    return min(kept, key=lambda plan: (plan.cycles, len(plan.names)), default=None)


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
