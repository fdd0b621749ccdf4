"""Which program files an option means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tilefarm.errors import DataError

_HINT: Final = "`tilefarm vta dump --conv ... --out FOLDER` writes some"


def program_files(paths: Sequence[Path]) -> list[Path]:
    """The files themselves, and every .npz of the folders in the order of their names.

    Raises:
        DataError: a path does not exist, or a folder holds no program.
    """
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise DataError(f"{path}: no such file or folder", _HINT)
        inside = sorted(path.glob("*.npz")) if path.is_dir() else [path]
        if not inside:
            raise DataError(f"{path}: holds no program (*.npz)", _HINT)
        found += inside
    return found
