"""What two nights say of one another: cycles are exact, so every change is real and is told.

A simulator counts the same cycles for the same program, wherever it runs. What got slower by more
than a tolerance fails; what cannot be compared says so, instead of passing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

TOLERANCE_PERCENT = 0.5


class NightlyVerdict(StrEnum):
    """How a row of the new night stands to the old one."""

    SAME = "same"
    FASTER = "faster"
    A_LITTLE_SLOWER = "a little slower"
    SLOWER = "SLOWER"
    LOST = "LOST"
    INSUFFICIENT_HISTORY = "insufficient history"
    DEVICE_CHANGED = "device changed"

    @property
    def fails(self) -> bool:
        """Whether somebody has to look."""
        return self in (NightlyVerdict.SLOWER, NightlyVerdict.LOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycles:
    """One number of a night: `cycles` is None where nothing ended well; `device` counted them."""

    cycles: int | None
    device: str = ""


Night: TypeAlias = Mapping[str, Cycles]
"""Cycles by name of what took them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRow:
    """One row of both nights; None where a night lacks it."""

    name: str
    old: int | None
    new: int | None
    verdict: NightlyVerdict

    @property
    def change_percent(self) -> float | None:
        """Of the cycles; None where they cannot be compared."""
        if not self.old or self.new is None or self.verdict is NightlyVerdict.DEVICE_CHANGED:
            return None
        return 100.0 * (self.new - self.old) / self.old


def judged(old: Night, new: Night, tolerance_percent: float) -> Iterator[JudgedRow]:
    """Every name of either night, the new one's order first."""
    nothing = Cycles(cycles=None)
    for name in dict.fromkeys((*new, *old)):
        before, now = old.get(name, nothing), new.get(name, nothing)
        verdict = _verdict(before, now, tolerance_percent)
        yield JudgedRow(name=name, old=before.cycles, new=now.cycles, verdict=verdict)


def _verdict(before: Cycles, now: Cycles, tolerance_percent: float) -> NightlyVerdict:
    if before.cycles is None:
        return NightlyVerdict.INSUFFICIENT_HISTORY
    if now.cycles is None:
        return NightlyVerdict.LOST
    if before.device != now.device:
        return NightlyVerdict.DEVICE_CHANGED
    if now.cycles == before.cycles:
        return NightlyVerdict.SAME
    if now.cycles < before.cycles:
        return NightlyVerdict.FASTER
    slower = 100 * (now.cycles - before.cycles) > tolerance_percent * before.cycles
    return NightlyVerdict.SLOWER if slower else NightlyVerdict.A_LITTLE_SLOWER
