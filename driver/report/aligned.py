"""Calls of a run on the run's own clock, whatever the clocks of their servers said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from tilefarm.rpc.served_call import Exchange, Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedSpan:
    """Something that a process of the farm did, in seconds since the run began.

    Attributes:
        process: a server's name, or that of a part of it.
        name: the method, or the phase of one.
        candidate: whom it was done for; empty if for the run.
        inner: phases within it, of the same process.
    """

    process: str
    name: str
    begin_seconds: float
    end_seconds: float
    candidate: str = ""
    inner: tuple[AlignedSpan, ...] = ()


def aligned(exchanges: Iterable[Exchange], wall_origin: float) -> Iterator[AlignedSpan]:
    """Every call at its server, and what parts of the server did for it.

    A server's clock is set by the call that travelled least; no call arrives before it was sent or
    is answered after its answer came, even if the clock was moved in between.
    """
    known = tuple(exchanges)
    offsets = _offsets(known)
    for exchange in known:
        served = exchange.served
        least, most = exchange.offset_bounds
        offset = min(max(offsets[served.component], least), most)
        arrived = served.arrived_seconds + offset - wall_origin
        whole = Phase(name=exchange.method, began_seconds=0.0, ended_seconds=served.seconds)
        own = tuple(_span(exchange, arrived, each) for each in served.phases if not each.part)
        yield replace(_span(exchange, arrived, whole), inner=own)
        yield from (_span(exchange, arrived, each) for each in served.phases if each.part)


def free_lane(ends: list[float], begin_seconds: float, end_seconds: float) -> int:
    """The first lane whose last bar has ended by then; `ends` are those of all lanes, kept."""
    for lane, end in enumerate(ends):
        if end <= begin_seconds:
            ends[lane] = end_seconds
            return lane
    ends.append(end_seconds)
    return len(ends) - 1


def _span(exchange: Exchange, arrived: float, phase: Phase) -> AlignedSpan:
    """A phase of a call that arrived then; none is outside its call."""
    server, longest = exchange.served.component, exchange.served.seconds
    return AlignedSpan(
        process=f"{phase.part} of {server}" if phase.part else server,
        name=phase.name,
        begin_seconds=arrived + min(max(phase.began_seconds, 0.0), longest),
        end_seconds=arrived + min(max(phase.ended_seconds, 0.0), longest),
        candidate=exchange.work.candidate,
    )


def _offsets(exchanges: Iterable[Exchange]) -> Mapping[str, float]:
    """What to add to each server's clock."""
    best: dict[str, Exchange] = {}
    for exchange in exchanges:
        known = best.get(exchange.served.component)
        if known is None or exchange.travel_seconds < known.travel_seconds:
            best[exchange.served.component] = exchange
    return {component: exchange.offset_seconds for component, exchange in best.items()}
