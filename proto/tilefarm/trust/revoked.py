"""Certificates that are good no more before their time: a file of serial numbers that servers read.

The file is made on the authority's machine and copied to those of trackers and devices, which read
it again when it changes: what is in it is refused from the next call on, on open connections too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from tilefarm.documents import read_json
from tilefarm.errors import CertificateError, SettingsError
from tilefarm.trust.access import CertificateName
from tilefarm.trust.hot_reload import HotReload
from tilefarm.trust.validity import serial_of

_VERSION: Final = 1
_REMEMBERED: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedCertificate:
    """One row: `serial` in hexadecimal, its holder's URI, when it was revoked in wall seconds."""

    serial: str
    holder: str
    at_seconds: float


class RevokedCertificates:
    """The rows of a file, read again when it changes.

    Raises:
        SettingsError: the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._rows = HotReload(path, _by_serial, _unusable)

    def require_good(self, pem: bytes) -> None:
        """Nothing if a certificate was not revoked.

        Raises:
            CertificateError: it was.
            SettingsError: the file cannot be used any more.
        """
        row = self._rows.contents().get(_serial(pem))
        if row is not None:
            raise CertificateError(
                f"the certificate {row.serial} of {CertificateName.of_uri(row.holder)} was revoked",
                "ask who runs the farm for a new one: `tilefarm pki issue`",
            )


def read_revoked(path: Path) -> tuple[RevokedCertificate, ...]:
    """The rows of a file.

    Raises:
        SettingsError: it is none of revoked certificates.
    """
    try:
        document = read_json(path)
        if document["version"] != _VERSION:
            raise ValueError(f"version {document['version']!r}")
        rows = tuple(RevokedCertificate(**row) for row in document["revoked"])
        for row in rows:
            CertificateName.of_uri(row.holder)
            int(row.serial, 16)
    except OSError as error:
        raise _unusable(path, str(error.strerror)) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unusable(path, f"not a list of revoked certificates ({error})") from None
    return rows


def revoked_text(rows: Iterable[RevokedCertificate]) -> str:
    """The file of these rows."""
    return json.dumps({"version": _VERSION, "revoked": [asdict(r) for r in rows]}, indent=1) + "\n"


@lru_cache(_REMEMBERED)
def _serial(pem: bytes) -> str:
    return f"{serial_of(pem):x}"


def _by_serial(path: Path) -> dict[str, RevokedCertificate]:
    return {row.serial: row for row in read_revoked(path)}


def _unusable(path: Path, why: str) -> SettingsError:
    return SettingsError(
        f"{path}: cannot read the revoked certificates: {why}",
        "`tilefarm pki revoke --revoked FILE` writes such a file",
    )
