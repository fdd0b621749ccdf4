"""What is sent where the call itself says everything: an empty message."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Empty:
    """A request or a reply that says no more than that it is one."""
