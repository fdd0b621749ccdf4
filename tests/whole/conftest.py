"""Simulators that whole networks share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kit.built import no_simulator, require
from kit.simulated import Simulators


@pytest.fixture(scope="module")
def simulators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulators]:
    """A simulator for each target; tests that need one are skipped where none is built."""
    require(no_simulator)
    with Simulators(tmp_path_factory.mktemp("blobs")) as made:
        yield made
