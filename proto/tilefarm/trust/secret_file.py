"""Files with secrets, made with their mode from the first byte on."""

from __future__ import annotations

import os
from pathlib import Path

from tilefarm.errors import SettingsError


def write_new(path: Path, content: bytes, *, mode: int) -> None:
    """A file that was not there before.

    Raises:
        SettingsError: it is there already, or cannot be written.
    """
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(number, "wb") as file:
            file.write(content)
    except OSError as error:
        raise SettingsError(
            f"{path}: cannot write it: {error.strerror}", "name a new file in a folder of yours"
        ) from None


def make_folder(path: Path) -> None:
    """A folder for its owner alone, if it is not there.

    Raises:
        SettingsError: it cannot be made.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"{path}: cannot make the folder: {error.strerror}", "name one in a folder of yours"
        ) from None
