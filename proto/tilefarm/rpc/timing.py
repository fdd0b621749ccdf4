"""Times what is done for a call: phases on the side that serves, whole calls on the one that asks.

Nothing is timed for a call that belongs to no work (`tilefarm.watch.trace_context`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeAlias

from tilefarm.clock import Clock
from tilefarm.rpc.served_call import TRAILER, Exchange, Phase, ServedCall, served_in
from tilefarm.watch.trace_context import TraceContext, about, current_context, doing

Trailer: TypeAlias = Iterable[tuple[str, str | bytes]]


@dataclass(slots=True, kw_only=True)
class Timing:
    """A call that is being answered."""

    component: str
    clock: Clock
    arrived_wall_seconds: float
    arrived_seconds: float
    phases: list[Phase] = field(default_factory=list)
    caller: str = ""

    @property
    def now(self) -> float:
        """Seconds since the call arrived."""
        return self.clock.seconds() - self.arrived_seconds

    @property
    def trailer(self) -> tuple[tuple[str, bytes], ...]:
        """The metadata that tells the caller."""
        return ((TRAILER, self.served),)

    @property
    def served(self) -> bytes:
        """The call so far, as the caller is told."""
        served = ServedCall(
            component=self.component,
            arrived_seconds=self.arrived_wall_seconds,
            seconds=self.now,
            phases=tuple(self.phases),
            caller=self.caller,
        )
        return served.to_bytes()


_TIMING: ContextVar[Timing | None] = ContextVar("timing", default=None)


@contextmanager
def serving(work: TraceContext | None, component: str, clock: Clock) -> Iterator[Timing | None]:
    """Answer a call in the name of some work; gives its timing, None if nobody wants it."""
    if work is None:
        yield None
        return
    timing = Timing(
        component=component,
        clock=clock,
        arrived_wall_seconds=clock.wall_seconds(),
        arrived_seconds=clock.seconds(),
    )
    before = _TIMING.get()
    _TIMING.set(timing)
    try:
        with doing(work):
            yield timing
    finally:
        _TIMING.set(before)


@contextmanager
def serving_part(candidate: str, request: str) -> Iterator[Timing | None]:
    """Answer a part of a call that is about a candidate; times it as if it were a call itself."""
    whole = _TIMING.get()
    with about(candidate, request):
        if whole is None:
            yield None
            return
        with serving(current_context(), whole.component, whole.clock) as timing:
            if timing is not None:
                timing.caller = whole.caller
            yield timing


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Time this block as a part of the call that is being answered."""
    timing = _TIMING.get()
    began = timing.now if timing else 0.0
    try:
        yield
    finally:
        if timing:
            timing.phases.append(Phase(name=name, began_seconds=began, ended_seconds=timing.now))


def note_phases(part: str, *steps: tuple[str, float]) -> None:
    """Steps (name, seconds) that another part has just done, one after the other."""
    timing = _TIMING.get()
    if timing is None:
        return
    at = max(0.0, timing.now - sum(seconds for _, seconds in steps))
    for name, seconds in steps:
        ended = min(at + seconds, timing.now)
        timing.phases.append(Phase(name=name, began_seconds=at, ended_seconds=ended, part=part))
        at = ended


@dataclass(frozen=True, slots=True)
class Watch:
    """Who wants to know of calls, and by which clock."""

    take: Callable[[Exchange], None]
    clock: Clock


_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watching(watch: Watch | None) -> Iterator[None]:
    """Tell of all calls of this thread or coroutine within the block."""
    before = _WATCH.get()
    _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.set(before)


def calling(method: str) -> Callable[[Trailer | None], None]:
    """A call begins; what is returned takes the trailing metadata of its answer."""
    watch, work = _WATCH.get(), current_context()
    if watch is None or work is None:
        return _look_away
    sent = watch.clock.wall_seconds()

    def answered(trailer: Trailer | None) -> None:
        came = watch.clock.wall_seconds()
        served = served_in(trailer or ())
        if served is not None:
            watch.take(
                Exchange(
                    method=method, sent_seconds=sent, came_seconds=came, served=served, work=work
                )
            )

    return answered


def calling_for(method: str, candidate: str, request: str) -> Callable[[Trailer | None], None]:
    """As `calling`, for a part of a call; it is as if it were a call of that method itself."""
    with about(candidate, request):
        return calling(method)


def _look_away(_trailer: Trailer | None) -> None:
    """Takes an answer that nobody watches."""
