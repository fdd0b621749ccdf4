"""What a rule finds wrong with a function."""

from __future__ import annotations

from typing import TypeAlias

from compile_worker.ir.node import Node

Finding: TypeAlias = tuple[str, Node]
"""The reason, and the place."""
