"""The farm's own certificate authority: makes it, issues and renews certificates, reads them.

Keys are P-256. A certificate names its holder by the URI `spiffe://farm/ROLE/NAME`; those of
trackers and devices also name the hosts that they answer for, and only they may serve.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from tilefarm.errors import SettingsError
from tilefarm.trust.access import CertificateName, FarmRole
from tilefarm.trust.secret_file import make_folder, write_new
from tilefarm.trust.tls import AUTHORITY, IDENTITY, TlsFolder

from driver.atomic_write import write_atomically

AUTHORITY_KEY: Final = "ca.key"
ISSUED: Final = "issued.txt"
AUTHORITY_DAYS: Final = 3650
_BACKDATED: Final = timedelta(minutes=5)
"""Clocks of other machines may be behind ours."""

_PURPOSES: Final = {
    FarmRole.TRACKER: [ExtendedKeyUsageOID.SERVER_AUTH],
    FarmRole.DEVICE: [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH],
}
"""Of roles that serve; all others only call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What a certificate says; `not_after` in wall seconds."""

    holder: CertificateName
    hosts: tuple[str, ...]
    not_before: float
    not_after: float


@dataclass(frozen=True, slots=True)
class Authority:
    """The authority of one farm.

    Args:
        folder: with its certificate, and the key that must stay there.
    """

    folder: Path

    def create(self, *, now_seconds: float) -> None:
        """Make it.

        Raises:
            SettingsError: there is one already, or the folder cannot be written.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("tilefarm authority")
        made = (
            _draft(name, name, key, now_seconds, AUTHORITY_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        make_folder(self.folder)
        write_new(self.folder / AUTHORITY_KEY, _key_text(key), mode=0o600)
        write_new(self.folder / AUTHORITY, _text(made), mode=0o644)

    def issue(
        self,
        holder: CertificateName,
        hosts: Sequence[str],
        out: Path,
        *,
        now_seconds: float,
        days: float,
    ) -> None:
        """A folder for one party, whatever it held before.

        Args:
            holder: whom it is for.
            hosts: names and addresses under which a server is called.
            out: the folder; key and certificate are replaced at once.
            now_seconds: wall seconds.
            days: how long it is good for.

        Raises:
            SettingsError: the authority is not there, or the folder cannot be made.
            OutputError: the folder cannot be written.
        """
        authority, authority_key = self._read()
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.UniformResourceIdentifier(holder.uri), *map(_host, hosts)]
        purposes = _PURPOSES.get(holder.role, [ExtendedKeyUsageOID.CLIENT_AUTH])
        made = (
            _draft(_name(str(holder)), authority.subject, key, now_seconds, days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(authority_key, hashes.SHA256())
        )
        self._note(holder, made)
        make_folder(out)
        write_atomically(out / AUTHORITY, _text(authority))
        write_atomically(out / IDENTITY, _key_text(key) + _text(made), mode=0o600)

    def issued(self) -> dict[str, CertificateName]:
        """Whom each certificate was issued for, by serial number in hexadecimal, oldest first.

        Raises:
            SettingsError: the authority is not there.
        """
        self._read()
        try:
            lines = (self.folder / ISSUED).read_text(encoding="utf-8").splitlines()
            rows = [line.split(" ") for line in lines]
            return {serial: CertificateName.of_uri(uri) for serial, uri in rows}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise SettingsError(
                f"{self.folder / ISSUED}: cannot read whom certificates were issued for: {error}",
                "each line is SERIAL spiffe://farm/ROLE/NAME",
            ) from None

    def _note(self, holder: CertificateName, made: x509.Certificate) -> None:
        """Before a certificate leaves: whoever loses its folder can have it revoked."""
        try:
            with (self.folder / ISSUED).open("a", encoding="utf-8") as file:
                file.write(f"{made.serial_number:x} {holder.uri}\n")
        except OSError as error:
            raise SettingsError(
                f"{self.folder / ISSUED}: cannot note the certificate: {error.strerror}",
                "issue certificates where the authority may be written",
            ) from None

    def _read(self) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        try:
            authority = x509.load_pem_x509_certificate((self.folder / AUTHORITY).read_bytes())
            content = (self.folder / AUTHORITY_KEY).read_bytes()
            key = serialization.load_pem_private_key(content, password=None)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "not a key and a certificate"
            raise SettingsError(
                f"{self.folder}: no authority is here: {reason}", "`tilefarm pki init` makes one"
            ) from None
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return authority, key


def certificate_in(folder: Path) -> Certificate:
    """What the certificate of a party's folder says.

    Raises:
        SettingsError: there is none, or it is none of ours.
    """
    try:
        found = x509.load_pem_x509_certificate(TlsFolder(folder).read().certificate)
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        (uri,) = names.get_values_for_type(x509.UniformResourceIdentifier)
        holder = CertificateName.of_uri(uri)
    except (ValueError, x509.ExtensionNotFound) as error:
        raise SettingsError(
            f"{folder / IDENTITY} is no certificate of a farm: {error}",
            "give a folder that `tilefarm pki issue` made",
        ) from None
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return Certificate(
        holder=holder,
        hosts=(*names.get_values_for_type(x509.DNSName), *addresses),
        not_before=found.not_valid_before_utc.timestamp(),
        not_after=found.not_valid_after_utc.timestamp(),
    )


def _draft(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now_seconds: float,
    days: float,
) -> x509.CertificateBuilder:
    now = datetime.fromtimestamp(now_seconds, UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*, certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificates,
        key_cert_sign=certificates,
        crl_sign=certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        pass
    try:
        return x509.DNSName(text)
    except ValueError:
        raise SettingsError(f"--host {text}: no host name", "in ASCII, or an address") from None


def _text(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
