"""What is said where a call alone says all."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Nothing:
    """A request or a reply that says no more than that it is one."""
