"""Benchmarks of the simulator need the library."""

from __future__ import annotations

import pytest
from kit.built import no_simulator, require


@pytest.fixture(scope="session", autouse=True)
def _built() -> None:
    require(no_simulator)
