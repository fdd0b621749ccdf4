"""The keys of a farm's artifacts as files: one that signs, and its public half for devices."""

from __future__ import annotations

import secrets
from pathlib import Path

from tilefarm.trust.ed25519 import KEY_NBYTES
from tilefarm.trust.secret_file import write_new
from tilefarm.trust.signing import key_pair


def create_key_pair(private: Path, public: Path) -> None:
    """A fresh pair, in files that were not there before.

    Raises:
        SettingsError: a file is there already, or cannot be written.
    """
    for path, text in zip(
        (private, public), key_pair(secrets.token_bytes(KEY_NBYTES)), strict=True
    ):
        write_new(path, f"{text}\n".encode(), mode=0o600)
