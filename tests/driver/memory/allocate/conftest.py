"""What these tests need."""

from __future__ import annotations

import pytest
from kit.allocating import no_allocator
from kit.built import require


@pytest.fixture(scope="session", autouse=True)
def _allocator() -> None:
    require(no_allocator)
