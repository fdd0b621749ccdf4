"""One call as its server saw it, told to a caller who traces in the call's trailing metadata.

A server times with its own clock; the caller knows when it sent and when the answer came. Both
together say how far the clocks are apart, so a trace of several hosts needs no clock that is right.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from tilefarm.watch.trace_context import TraceContext

TRAILER: Final = "tilefarm-served-bin"
MOST_PHASES: Final = 16
_MOST_NBYTES: Final = 4096
_NAME_LENGTH: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A part of a call, in seconds since it arrived; `part` did it, if not the server itself."""

    name: str
    began_seconds: float
    ended_seconds: float
    part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedCall:
    """One call as its server saw it.

    Attributes:
        component: the server's name in its log.
        arrived_seconds: wall seconds of the server when the call came.
        seconds: until the answer left.
        phases: within them, in the order of their ends.
        caller: who the server says has called: user and roles.
    """

    component: str
    arrived_seconds: float
    seconds: float
    phases: tuple[Phase, ...] = ()
    caller: str = ""

    def to_bytes(self) -> bytes:
        """What travels; of very many phases only the first."""
        rows = [
            [p.name, round(p.began_seconds, 6), round(p.ended_seconds, 6), p.part]
            for p in self.phases[:MOST_PHASES]
        ]
        seconds = round(self.seconds, 6)
        document = [self.component, self.arrived_seconds, seconds, rows, self.caller]
        return json.dumps(document).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One call as both sides saw it; `sent` and `came` are wall seconds of the caller."""

    method: str
    sent_seconds: float
    came_seconds: float
    served: ServedCall
    work: TraceContext

    @property
    def offset_bounds(self) -> tuple[float, float]:
        """What is to be added to the server's clock, at least and at most: no message is early."""
        served = self.served
        least = self.sent_seconds - served.arrived_seconds
        most = self.came_seconds - served.arrived_seconds - served.seconds
        return least, max(least, most)

    @property
    def offset_seconds(self) -> float:
        """The likeliest: both ways took as long."""
        return sum(self.offset_bounds) / 2

    @property
    def travel_seconds(self) -> float:
        """Both ways together; the offset is wrong by half of it at most."""
        least, most = self.offset_bounds
        return most - least


def served_in(metadata: Iterable[tuple[str, str | bytes]]) -> ServedCall | None:
    """What a server told; None if it told nothing, or nonsense: a trace is not worth an error."""
    told = dict(metadata).get(TRAILER)
    if not isinstance(told, bytes) or len(told) > _MOST_NBYTES:
        return None
    try:
        component, arrived, seconds, rows, caller = json.loads(told)
        phases = tuple(_phase(row) for row in rows[:MOST_PHASES])
        return ServedCall(
            component=_name(component),
            arrived_seconds=_number(arrived),
            seconds=_number(seconds),
            phases=phases,
            caller=_name(caller),
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _phase(row: Any) -> Phase:
    name, began, ended, part = row
    return Phase(
        name=_name(name),
        began_seconds=_number(began),
        ended_seconds=max(_number(began), _number(ended)),
        part=_name(part),
    )


def _name(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no name")
    return value[:_NAME_LENGTH]


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{value!r} is no number of seconds")
    return float(value)
