"""Children run on the built runtime; where nobody has built it, these tests are skipped."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _needs(built: None) -> None:
    """The runtime."""
