"""What the farm's tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.farm.in_process import Farm
from kit.farm.watched_device import Bed


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with Farm(tmp_path) as running:
        yield running


@pytest.fixture
def bed(farm: Farm) -> Bed:
    """A farm whose one device is watched."""
    return Bed(farm)
