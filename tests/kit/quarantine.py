"""Tests that are known to fail by chance: they run and are shown, and their failing is not fatal.

The list is for the days between finding such a test and mending it. Each has its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pytest

QUARANTINE: Final[Mapping[str, str]] = {}
"""The reason of each, by `tests/folder/test_file.py::test_name` (all its parameters at once)."""


def set_apart(items: Iterable[pytest.Item], listed: Mapping[str, str] = QUARANTINE) -> None:
    """Marks what is listed as expected to fail, or not."""
    for item in items:
        if reason := listed.get(item.nodeid.partition("[")[0]):
            item.add_marker(pytest.mark.xfail(strict=False, reason=f"quarantine: {reason}"))
