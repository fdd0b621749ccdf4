"""Identifiers: where fresh ones come from, and how names of things are spelled."""

from __future__ import annotations

import re
import secrets
from collections.abc import Container
from typing import Protocol

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_]+")


class IdSource(Protocol):
    """Gives identifiers that nobody else gives."""

    def fresh(self, prefix: str) -> str:
        """A new identifier that begins with `prefix`."""
        ...


class RandomIds:
    """Identifiers that are unique across machines."""

    def fresh(self, prefix: str) -> str:
        return f"{prefix}-{secrets.token_hex(8)}"


def unused(name: str, *taken: Container[str]) -> str:
    """`name`, with as many underscores behind it as make it none of those that are taken."""
    while any(name in names for names in taken):
        name += "_"
    return name


def symbol(text: str) -> str:
    """`text` as a C symbol: other characters become underscores; never empty, no leading digit."""
    cleaned = _NOT_IN_A_NAME.sub("_", text).strip("_") or "unnamed"
    return f"_{cleaned}" if cleaned[0].isdigit() else cleaned
