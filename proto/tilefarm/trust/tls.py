"""The certificates of one party: a folder with its own, its key, and the farm's authority.

Key and certificate are one file, so that both are replaced at once.
"""

from __future__ import annotations

import ssl
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tilefarm.errors import SettingsError

AUTHORITY: Final = "ca.pem"
IDENTITY: Final = "identity.pem"
_BEGIN_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """PEM texts: the authority that both sides trust, and what proves who we are to it."""

    authority: bytes
    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TlsFolder:
    """Where a party's certificates lie; read anew for each connection, so they may be rotated."""

    path: Path

    def read(self) -> Certificates:
        """What lies there now.

        Raises:
            SettingsError: a file is absent, or others can read the key.
        """
        identity = self.path / IDENTITY
        try:
            authority = (self.path / AUTHORITY).read_bytes()
            content = identity.read_bytes()
            mode = identity.stat().st_mode
        except OSError as error:
            raise SettingsError(
                f"--tls {self.path}: cannot read {Path(error.filename).name}: {error.strerror}",
                "give a folder that `tilefarm pki issue` made",
            ) from None
        if stat.S_IMODE(mode) & 0o077:
            raise SettingsError(f"{identity}: others can read the key", f"chmod 600 {identity}")
        key, begin, certificate = content.partition(_BEGIN_CERTIFICATE)
        if not key or not begin:
            raise SettingsError(
                f"{identity} does not hold a key and its certificate",
                "`tilefarm pki rotate` makes it anew",
            )
        return Certificates(authority=authority, certificate=begin + certificate, key=key)

    def read_usable(self) -> Certificates:
        """What lies there now, if a server can show it: gRPC itself would begin to serve with less.

        Raises:
            SettingsError: see `read`; or they are no certificates, the key is not that of the
                certificate, or somebody is writing them.
        """
        found = self.read()
        identity, authority = self.path / IDENTITY, self.path / AUTHORITY
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(identity)
            context.load_verify_locations(authority)
        except OSError as error:  # of which ssl.SSLError is one
            reason = getattr(error, "reason", None) or error.strerror or error
            raise SettingsError(
                f"--tls {self.path}: no key with its certificate and authority ({reason})",
                "`tilefarm pki rotate` makes them anew",
            ) from None
        if self.read() != found:
            raise SettingsError(f"--tls {self.path}: somebody is writing there", "try again")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a client shows: its token, and its certificate where the farm speaks TLS.

    `signing_key` signs the artifacts that it sends, or tells the signatures of those it loads.
    """

    token: str = field(repr=False)
    tls: TlsFolder | None = None
    signing_key: bytes | None = field(default=None, repr=False)
