"""What a party shows and asks for, read from its files: token, certificates, signing key."""

from __future__ import annotations

import secrets
import stat
from pathlib import Path
from typing import Final

from tilefarm.clock import Clock, SystemClock
from tilefarm.documents import read_text
from tilefarm.errors import SettingsError
from tilefarm.trust.secret_file import write_new
from tilefarm.trust.tls import Credentials, TlsFolder
from tilefarm.trust.validity import require_current

_WRITERS: Final = "give a file that `tilefarm tracker --token-file` or `tilefarm pki` wrote"


def create_token(path: Path) -> str:
    """Write a fresh random secret to a new file of mode 0600.

    Raises:
        SettingsError: the file cannot be written.
    """
    token = secrets.token_urlsafe(32)
    write_new(path, f"{token}\n".encode(), mode=0o600)
    return token


def read_token(path: Path) -> str:
    """The secret in a file: a token, or a signing key.

    Raises:
        SettingsError: the file is absent, empty, or others may read it.
    """
    try:
        mode = path.stat().st_mode
        token = read_text(path).strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", error)
        raise SettingsError(
            f"{path}: cannot read the secret: {reason}",
            _WRITERS,
        ) from None
    if stat.S_IMODE(mode) & 0o077:
        raise SettingsError(f"{path}: others can read the secret", f"chmod 600 {path}")
    if not token:
        raise SettingsError(f"{path}: the file of a secret is empty", "delete it, make it anew")
    if not all("!" <= letter <= "~" for letter in token):
        raise SettingsError(
            f"{path}: not a secret: it holds more than one word of ASCII",
            _WRITERS,
        )
    return token


def credentials(token_file: Path, tls: Path | None, signing_key: Path | None = None) -> Credentials:
    """What a client shows: the token of a file, certificates and a signing key if there are any.

    Raises:
        SettingsError: see `read_token` and `TlsFolder.read`.
        CertificateError: the certificate is out of date.
    """
    key = None if signing_key is None else read_token(signing_key).encode()
    return Credentials(
        token=read_token(token_file), tls=current_tls(tls, SystemClock()), signing_key=key
    )


def current_tls(tls: Path | None, clock: Clock) -> TlsFolder | None:
    """A folder of certificates that are valid now; None for None.

    Raises:
        CertificateError: they are out of date.
    """
    if tls is None:
        return None
    folder = TlsFolder(tls)
    require_current(folder, now_seconds=clock.wall_seconds())
    return folder
