"""Proofs on the device need the library of the simulator."""

from __future__ import annotations

import pytest
from kit.built import no_simulator, require


@pytest.fixture(scope="session", autouse=True)
def _built() -> None:
    require(no_simulator)
