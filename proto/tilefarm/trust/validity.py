"""When a certificate is good, and its number, read without a library for certificates.

Servers tell their owner that a certificate has run out before they start; a small board has
nothing but Python to find that out with. The structure is RFC 5280's, section 4.1.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from tilefarm.errors import CertificateError, SettingsError
from tilefarm.trust.tls import IDENTITY, TlsFolder

_VERSION_TAG: Final = 0xA0
_TIME_FORMATS: Final = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}
"""UTCTime and GeneralizedTime; RFC 5280 allows no other spelling of either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """Wall seconds from which, and before which, a certificate is good."""

    not_before: float
    not_after: float


def validity_of(pem: bytes) -> Validity:
    """What a certificate says of its time.

    Raises:
        ValueError: the text is no certificate.
    """
    try:
        _serial, _algorithm, _issuer, (_, period), *_ = _fields(pem)
        not_before, not_after = (_seconds(tag, text) for tag, text in _parts(period))
    except (IndexError, KeyError) as error:
        raise ValueError(f"not a certificate ({error!r})") from None
    return Validity(not_before=not_before, not_after=not_after)


def serial_of(pem: bytes) -> int:
    """The number that its authority gave to a certificate, and to no other.

    Raises:
        ValueError: the text is no certificate.
    """
    return int.from_bytes(_fields(pem)[0][1], signed=True)


def _fields(pem: bytes) -> list[tuple[int, bytes]]:
    """Tag and content of what a certificate's authority signed, from the serial number on."""
    try:
        ((_, certificate),) = _parts(ssl.PEM_cert_to_DER_cert(pem.decode("ascii")))
        (_, signed), *_ = _parts(certificate)
        fields = list(_parts(signed))
        fields = fields[1:] if fields[0][0] == _VERSION_TAG else fields
        if not fields:
            raise ValueError("a certificate without a number")
        return fields
    except IndexError as error:
        raise ValueError(f"not a certificate ({error!r})") from None


def require_current(folder: TlsFolder, *, now_seconds: float) -> None:
    """Nothing if the certificate of a party's folder is good now.

    Raises:
        CertificateError: it is not; a server would only close the connection.
        SettingsError: there is none.
    """
    try:
        found = validity_of(folder.read().certificate)
    except ValueError as error:
        raise SettingsError(
            f"{folder.path / IDENTITY} is no certificate of a farm: {error}",
            "give a folder that `tilefarm pki issue` made",
        ) from None
    if found.not_before <= now_seconds < found.not_after:
        return
    expired = now_seconds >= found.not_after
    word, at = ("has expired on", found.not_after) if expired else ("is from", found.not_before)
    raise CertificateError(
        f"{folder.path}: the certificate {word} {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
        " UTC",
        f"`tilefarm pki rotate AUTHORITY {folder.path}`, with the folder of the farm's authority"
        if expired
        else "set the clock of this machine right",
    )


def _parts(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each DER element in a row."""
    at = 0
    while at < len(content):
        tag, nbytes = content[at], content[at + 1]
        at += 2
        if nbytes & 0x80:  # The long form: so many bytes of length follow.
            digits = nbytes & 0x7F
            nbytes = int.from_bytes(content[at : at + digits])
            at += digits
        if at + nbytes > len(content):
            raise ValueError("a certificate that is cut short")
        yield tag, content[at : at + nbytes]
        at += nbytes


def _seconds(tag: int, text: bytes) -> float:
    return (
        datetime.strptime(text.decode("ascii"), _TIME_FORMATS[tag]).replace(tzinfo=UTC).timestamp()
    )
