"""Numbers of messages that stand for something: times that pass, amounts that can be counted.

Whoever is at the other end may be broken, or lie. One rule for every field of every message, those
of later versions included, so that nothing behind the wire meets infinities or what no file holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

LONGEST_SECONDS: Final = 1e9
"""Thirty years: longer than anything lasts, and short enough for every timer of the system."""
MOST: Final = 1 << 53
"""Of cycles, bytes, runs: floats and JSON hold all whole numbers up to it, databases more. At a
gigahertz it is a hundred days."""
ORDINALS: Final = frozenset({"fence", "spoiled_fence"})
"""They are compared and nothing else; a tracker refuses those that leave it no higher ones."""


def require_ranges(message: Message) -> None:
    """Nothing if every number in the message, and in those within it, can be.

    Raises:
        ValueError: names the field, and the number.
    """
    for field, value in message.ListFields():
        held = _held(field)
        if held is None:
            continue
        values = value if held.is_many else (value,)
        if held.reason is None:
            for inner in values:
                require_ranges(inner)
        elif reason := held.reason(values):
            raise ValueError(f"{message.DESCRIPTOR.name}.{field.name} is {reason}")


class _Held(NamedTuple):
    """A field that numbers may be in: why they cannot be; None where messages are in it."""

    is_many: bool
    reason: Callable[[Any], str] | None


@cache  # What is asked of a descriptor takes longer than to look it up here.
def _held(field: FieldDescriptor) -> _Held | None:
    """None for a field in which everything can be."""
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        return _Held(field.is_repeated, None)
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return _Held(field.is_repeated, _no_seconds)
    if field.type == FieldDescriptor.TYPE_UINT64 and field.name not in ORDINALS:
        return _Held(field.is_repeated, _no_amount)
    return None


def _no_seconds(values: Iterable[float]) -> str:
    wrong = [v for v in values if not 0 <= v <= LONGEST_SECONDS]
    return f"{wrong[0]}, not within 0..{LONGEST_SECONDS:g}" if wrong else ""


def _no_amount(values: Iterable[int]) -> str:
    most = max(values, default=0)
    return f"{most}, more than {MOST}" if most > MOST else ""
