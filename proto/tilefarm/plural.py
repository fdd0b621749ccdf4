"""How many of something, for people."""

from __future__ import annotations


def plural(count: int, one: str, many: str = "") -> str:
    """`1 trial`, `2 trials`; `many` where that is not `one` with an s."""
    return f"{count} {form(count, one, many or one + 's')}"


def form(count: int, one: str, many: str) -> str:
    """The form of a word that goes with a count: 1 `differs`, 2 `differ`."""
    return one if count == 1 else many
