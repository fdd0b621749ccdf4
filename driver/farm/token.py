"""The farm's shared secret: a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from tilefarm.errors import SettingsError


def create_token(path: Path) -> str:
    """Write a fresh random secret to a new file of mode 0600.

    Raises:
        SettingsError: the file cannot be written.
    """
    token = secrets.token_urlsafe(32)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise SettingsError(
            f"{path}: cannot write the token: {error.strerror}", "name a file in a folder of yours"
        ) from None
    with os.fdopen(handle, "w") as file:
        file.write(token + "\n")
    return token


def read_token(path: Path) -> str:
    """The secret in a file.

    Raises:
        SettingsError: the file is absent, empty, or others may read it.
    """
    try:
        mode = path.stat().st_mode
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text"
        raise SettingsError(
            f"{path}: cannot read the token: {reason}",
            "give the file that `tilefarm tracker --token-file` wrote",
        ) from None
    if stat.S_IMODE(mode) & 0o077:
        raise SettingsError(f"{path}: others can read the token", f"chmod 600 {path}")
    if not token:
        raise SettingsError(f"{path}: the token file is empty", "delete it and start the tracker")
    return token
