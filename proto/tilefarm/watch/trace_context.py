"""Which work a process is doing for whom: told by W3C trace headers from caller to server.

A driver names its run and the candidate of each call in the headers `traceparent` and `baggage`
(https://www.w3.org/TR/trace-context/, https://www.w3.org/TR/baggage/); the server does the call in
that name, so that log lines on both sides carry the same words. Other tools may join the trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final, Self

from tilefarm.digest import Digest

TRACEPARENT: Final = "traceparent"
BAGGAGE: Final = "baggage"

_PARENT: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MEMBER: Final = re.compile(rf"(run|candidate)=({_NAME.pattern})")
_BAGGAGE_LENGTH: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceContext:
    """Something that is done for a run.

    Attributes:
        trace_id: 32 hex digits, the same for all that a run does.
        span_id: 16 hex digits, of the caller's part.
        run: the run's id.
        candidate: the digest of the compile job that it is about; empty: the run as a whole.
    """

    trace_id: str
    span_id: str
    run: str = ""
    candidate: str = ""

    @classmethod
    def of(cls, run: str) -> Self:
        """The work of a run; ids follow from the names, so that all parts make the same ones."""
        return cls(trace_id=Digest.of(run.encode()).hex[:32], span_id=_span_id(run, ""), run=run)

    def about(self, candidate: str, request: str) -> Self:
        """The part of it that asks this for a candidate."""
        span_id = _span_id(self.run, request or candidate)
        return replace(self, candidate=candidate, span_id=span_id)

    @property
    def fields(self) -> Mapping[str, str]:
        """What log lines say of it."""
        named = {"run": self.run, "candidate": self.candidate}
        return {key: value for key, value in named.items() if value}

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The metadata that tells a server."""
        members = ",".join(f"{key}={value}" for key, value in self.fields.items())
        parent = (TRACEPARENT, f"00-{self.trace_id}-{self.span_id}-01")
        return (parent, (BAGGAGE, members)) if members else (parent,)


def _span_id(run: str, part: str) -> str:
    return Digest.of(f"{run} {part}".encode()).hex[:16]


def is_name(text: str) -> bool:
    """Whether a run or a candidate may be called so."""
    return _NAME.fullmatch(text) is not None


def context_of(metadata: Iterable[tuple[str, str | bytes]]) -> TraceContext | None:
    """The work that headers name; None if they name none, or are no such headers."""
    told = dict(metadata)
    parent = _PARENT.fullmatch(str(told.get(TRACEPARENT, "")))
    if parent is None:
        return None
    baggage = str(told.get(BAGGAGE, ""))
    members = map(_MEMBER.fullmatch, baggage[:_BAGGAGE_LENGTH].split(","))
    named = {member[1]: member[2] for member in members if member}
    return TraceContext(trace_id=parent[1], span_id=parent[2], **named)


_WORK: ContextVar[TraceContext | None] = ContextVar("work", default=None)


def current_context() -> TraceContext | None:
    """What this thread or coroutine is doing; None: nothing that anybody asked for."""
    return _WORK.get()


def context_headers() -> tuple[tuple[str, str], ...]:
    """The metadata that names what this thread or coroutine is doing; none if nothing."""
    work = _WORK.get()
    return work.headers if work else ()


@contextmanager
def doing(work: TraceContext | None) -> Iterator[None]:
    """Do this within the block."""
    # Not reset by its token: a generator that is thrown away ends in another context.
    before = _WORK.get()
    _WORK.set(work)
    try:
        yield
    finally:
        _WORK.set(before)


@contextmanager
def about(candidate: str, request: str) -> Iterator[None]:
    """Do this candidate, or all of the work if it has no name, within the block."""
    work = _WORK.get()
    with doing(work.about(candidate, request) if work else None):
        yield
