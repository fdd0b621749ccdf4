"""How many of something, for people."""

from __future__ import annotations


def plural(count: int, one: str, many: str = "") -> str:
    """`1 trial`, `2 trials`; `many` where that is not `one` with an s."""
    return f"{count} {one if count == 1 else many or one + 's'}"
