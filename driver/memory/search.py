"""The search for a schedule, and the schedule of one sequence, by the compiled core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from driver.memory.instance import Instance
from driver.memory.native.library import interruptible
from driver.memory.native.scheduling import Limits, decode, search
from driver.memory.schedule import Found, Schedule, Token


def searched(
    instance: Instance,
    favourites: Sequence[Sequence[Token]] = (),
    *,
    is_placed: bool,
    bound: int,
    tries: int,
    seed: int,
    seconds: float,
) -> Found:
    """The best schedules of `tries` sequences, `favourites` first, and of some in any case.

    Same arguments, same answer, unless `seconds` end it. Ends early where the makespan is `bound`
    and nothing is moved that need not be.

    Args:
        is_placed: buffers get their offsets as they come, so that every schedule has addresses;
            otherwise bytes are counted, of which fewer are wasted, and offsets are left open.
    """

    def call(stop: Any) -> Found:
        limits = Limits(is_placed, seed % 2**64, tries, bound, seconds, stop)
        return search(instance, favourites, limits)

    return interruptible(call)


def decoded(instance: Instance, tokens: Sequence[Token]) -> Schedule | None:
    """The schedule of a sequence; None where an operation has no room whatever leaves."""
    best = decode(instance, tokens).best
    return best[0] if best else None
