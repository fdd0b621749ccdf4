"""Numbers of messages that stand for something: times that pass, amounts that can be counted.

Whoever is at the other end may be broken, or lie. One rule for every field of every message, those
of later versions included, so that nothing behind the wire meets infinities or what no file holds.
"""

from __future__ import annotations

import math
from typing import Any, Final

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
        values = value if field.is_repeated else (value,)
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in values:
                require_ranges(inner)
        elif reason := _reason(field, values):
            raise ValueError(f"{message.DESCRIPTOR.name}.{field.name} is {reason}")


def _reason(field: FieldDescriptor, values: Any) -> str:
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        wrong = [v for v in values if not (math.isfinite(v) and 0 <= v <= LONGEST_SECONDS)]
        return f"{wrong[0]}, not within 0..{LONGEST_SECONDS:g}" if wrong else ""
    if field.type == FieldDescriptor.TYPE_UINT64 and field.name not in ORDINALS:
        most = max(values, default=0)
        return f"{most}, more than {MOST}" if most > MOST else ""
    return ""
