"""What an allocator is asked for: bytes over a time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Bytes that are wanted from begin to end of some time; at a given offset, if it is pinned."""

    begin: int
    end: int
    nbytes: int
    alignment: int = 1
    pinned_at: int | None = None
