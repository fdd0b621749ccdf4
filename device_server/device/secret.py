"""A device's secret: proves to the tracker that it is the same one after a restart."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from tilefarm.errors import SettingsError

_NBYTES = 32


def device_secret(folder: Path) -> bytes:
    """The secret in a device's folder; made when it is not there.

    Raises:
        SettingsError: it cannot be kept.
    """
    path = folder / "secret"
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(number, "r+b") as file:
            secret = file.read()
            if len(secret) != _NBYTES:  # Fresh, or cut off by a full disk.
                secret = secrets.token_bytes(_NBYTES)
                file.seek(0)
                file.truncate()
                file.write(secret)
    except OSError as error:
        raise SettingsError(
            f"{path}: cannot keep the device's secret: {error.strerror}",
            "free some space, or use another --folder",
        ) from None
    return secret
