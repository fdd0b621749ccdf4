"""Identifiers that are the same in every run of a test."""

from __future__ import annotations

import itertools


class CountingIds:
    """Identifiers 1, 2, 3 …"""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def fresh(self, prefix: str) -> str:
        return f"{prefix}-{next(self._numbers)}"
