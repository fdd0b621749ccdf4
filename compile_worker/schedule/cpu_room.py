"""Schedules as data, and how much of what they compute may lie on the stack at once."""

from __future__ import annotations

from typing import Final, TypeAlias

from tilefarm.trace import Step, Trace

Call: TypeAlias = tuple[str | int, ...]
"""A primitive and its arguments."""

ROOM: Final = 48 * 1024
"""Bytes of one local buffer: they live on the stack, and in a first-level cache at best."""


def trace_of(*steps: Call) -> Trace:
    """The trace of some steps."""
    return Trace(tuple(Step(str(step[0]), step[1:]) for step in steps))


def fitting(extent: int, nbytes: int) -> int:
    """How many of `extent` things of that size are made together: a divisor, 1 if none fits."""
    most = max(1, min(extent, ROOM // nbytes))
    return next(together for together in range(most, 0, -1) if extent % together == 0)
