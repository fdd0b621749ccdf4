"""The search for remedies that keep a promise: as cheap as possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from tilefarm.plural import plural

from driver.network.accuracy.remedies import SHARED_SHIFTS, Remedy

_MOST_DROPS: Final = 12
"""Attempts to do without some of the remedies, each at the cost of one more network."""
_MOST_ALONE: Final = 6
"""Remedies that are tried alone."""


Basis: TypeAlias = Literal["estimated", "differences", "measured"]
"""Which of the accelerator's cycles are measured: none, those of kernels that the plans that are
compared do not have in common, or all."""

CYCLES_ARE: Final[Mapping[Basis, str]] = {
    "estimated": "estimated",
    "differences": "measured where plans differ",
    "measured": "measured",
}
"""A basis in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCost:
    """What a network with some remedies loses, in points, and costs, in estimated cycles."""

    points: float
    cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyPlan:
    """Remedies, and what they come to.

    Attributes:
        points: that are lost.
        cycles: of the whole network, see `accuracy.price`.
        basis: of these; the processor's are always estimated.
    """

    remedies: tuple[Remedy, ...]
    points: float
    cycles: int
    basis: Basis = "estimated"

    @property
    def floats(self) -> tuple[str, ...]:
        """The layers in float."""
        return tuple(each.layer for each in self.remedies if each.kind == "float")

    @property
    def wide(self) -> tuple[str, ...]:
        """The layers with weights of 16 bits."""
        return tuple(each.layer for each in self.remedies if each.kind == "wide")

    @property
    def wide_results(self) -> tuple[str, ...]:
        """The layers with results of 16 bits."""
        return tuple(each.layer for each in self.remedies if each.kind == "results")

    @property
    def is_asymmetric(self) -> bool:
        return any(each.kind == "asymmetric" for each in self.remedies)

    @property
    def shares_shifts(self) -> bool:
        return SHARED_SHIFTS in self.remedies

    @property
    def macs(self) -> int:
        """Multiply-accumulates in float on the processor."""
        return sum(each.macs for each in self.remedies)

    def words(self) -> str:
        """What is done, layer by layer."""
        parts = ["asymmetric activations"] if self.is_asymmetric else []
        parts += [f"weights of 16 bits: {', '.join(self.wide)}"] if self.wide else []
        wide = ", ".join(self.wide_results)
        parts += [f"results of 16 bits: {wide}"] if wide else []
        parts += [f"in float: {', '.join(self.floats)}"] if self.floats else []
        parts += ["shifts shared"] if self.shares_shifts else []
        return "; ".join(parts) or "all in int8"

    def counted(self) -> str:
        """What is done, in few words."""
        counts = (
            ("weights of 16 bits in", len(self.wide)),
            ("results of 16 bits in", len(self.wide_results)),
            ("floats in", len(self.floats)),
        )
        parts = ["asymmetric activations"] if self.is_asymmetric else []
        parts += [f"{words} {plural(count, 'layer')}" for words, count in counts if count]
        parts += ["shifts shared"] if self.shares_shifts else []
        return ", ".join(parts) or "all in int8"


Judge = Callable[[tuple[Remedy, ...]], PlanCost]


def plans_for(
    remedies: Sequence[Remedy], judge: Judge, limit: float, *, savings: Sequence[Remedy] = ()
) -> list[RemedyPlan]:
    """Plans that were tried; the cheapest that loses at most `limit` points is `best_plan`.

    Remedies are taken in their order, twice as many each time, until the limit is kept; bisection
    finds the fewest. Few samples make a score jump, so these may be more than needed: the first
    ones are tried alone, and if none is enough, parts are tried without. What is best so far is
    tried with savings too. Nothing is tried twice.

    Args:
        remedies: those first that are worth most, see `accuracy.remedies.remedies`.
        judge: what comes of the network with these remedies.
        savings: that cost accuracy, not cycles.
    """
    tried: dict[frozenset[Remedy], RemedyPlan] = {}

    def keeps(chosen: Sequence[Remedy]) -> bool:
        needed = _without_vain(chosen)
        key = frozenset(needed)
        if key not in tried:
            found = judge(needed)
            tried[key] = RemedyPlan(remedies=needed, points=found.points, cycles=found.cycles)
        return tried[key].points <= limit

    enough, too_few = _first_that_keeps(remedies, keeps)
    if enough is not None:
        while enough - too_few > 1:
            middle = (enough + too_few) // 2
            if keeps(remedies[:middle]):
                enough = middle
            else:
                too_few = middle
        if not any(keeps([remedy]) for remedy in remedies[: min(enough, _MOST_ALONE)]):
            _drop(list(remedies[:enough]), keeps)
    for saving in savings:
        best = best_plan(list(tried.values()), limit)
        if best is not None:
            keeps((*best.remedies, saving))
    return list(tried.values())


def _without_vain(chosen: Sequence[Remedy]) -> tuple[Remedy, ...]:
    """Without 16 bits for layers that are in float."""
    floats = {each.layer for each in chosen if each.kind == "float"}
    return tuple(
        each for each in chosen if each.kind not in ("wide", "results") or each.layer not in floats
    )


def _drop(chosen: list[Remedy], keeps: Callable[[Sequence[Remedy]], bool]) -> None:
    """Tries to do without parts: halves first, then quarters and so on, the dearest first."""
    drops, size = 0, (len(chosen) + 1) // 2
    while size and len(chosen) > 1:
        dearest = sorted(chosen, key=lambda remedy: -remedy.cycles)
        for start in range(0, len(dearest), size):
            part = dearest[start : start + size]
            without = [remedy for remedy in chosen if remedy not in part]
            if drops < _MOST_DROPS and 0 < len(without) < len(chosen):
                drops += 1
                chosen = without if keeps(without) else chosen
        size = min(size, len(chosen)) // 2


def best_plan(plans: Sequence[RemedyPlan], limit: float) -> RemedyPlan | None:
    """The cheapest one that keeps the limit; None where none does."""
    kept = [plan for plan in plans if plan.points <= limit]
    return min(kept, key=lambda plan: (plan.cycles, len(plan.remedies)), default=None)


def _first_that_keeps(
    remedies: Sequence[Remedy], keeps: Callable[[Sequence[Remedy]], bool]
) -> tuple[int | None, int]:
    """A number of remedies that is enough, None if all are not; and the last that was not."""
    too_few, count = 0, 0
    if keeps(()):
        return 0, 0
    while count < len(remedies):
        count = min(max(1, 2 * count), len(remedies))
        if keeps(remedies[:count]):
            return count, too_few
        too_few = count
    return None, too_few
