"""What the farm's tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.farm import Farm


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Farm]:
    with Farm(tmp_path) as running:
        yield running
