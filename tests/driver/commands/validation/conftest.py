"""Proofs on the device need the library of the simulator."""

from __future__ import annotations

import pytest
from tilefarm.errors import InfraError

from device_server.library.native import find_library


@pytest.fixture(scope="session", autouse=True)
def _built() -> None:
    try:
        find_library()
    except InfraError as error:
        pytest.skip(str(error))
