"""Where facts and real models outside the repository lie, if they do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def shared_folder() -> Path | None:
    """The folder `shared` next to the repository, or None."""
    folder = Path(__file__).resolve().parents[3] / "shared"
    return folder if folder.is_dir() else None


def zoo_folder() -> Path:
    """The folder with trained networks and their data: TILEFARM_ZOO, or `zoo` in the one above.

    The test that asks is skipped where there is neither.
    """
    shared = shared_folder()
    named = os.environ.get("TILEFARM_ZOO")
    folder = Path(named) if named else shared / "zoo" if shared else None
    if folder is None or not folder.is_dir():
        pytest.skip("no zoo of trained networks: neither TILEFARM_ZOO nor ../shared/zoo")
    return folder
