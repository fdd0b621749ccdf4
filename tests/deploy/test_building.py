"""Two processes that build the distribution of a device in the same tree do so in turn."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from .building import building


def test_only_one_builds(tmp_path: Path) -> None:
    with (
        building(tmp_path),
        (tmp_path / "build" / "device.lock").open() as other,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with building(tmp_path):
        pass
