"""Numbers of certificates, and the file of those that are refused."""

from __future__ import annotations

import contextlib
import json
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from hypothesis import example, given
from hypothesis import strategies as st
from kit.farm.parties import Parties
from tilefarm.errors import CertificateError, SettingsError
from tilefarm.rpc.security import security
from tilefarm.trust.access import FarmRole
from tilefarm.trust.revoked import (
    RevokedCertificate,
    RevokedCertificates,
    read_revoked,
    revoked_text,
)
from tilefarm.trust.tls import TlsFolder
from tilefarm.trust.validity import serial_of


def listing(serial: object, holder: object) -> str:
    row = {"serial": serial, "holder": holder, "at_seconds": 0}
    return json.dumps({"version": 1, "revoked": [row]})


ROW = RevokedCertificate(serial="1f", holder="spiffe://farm/submit/ann", at_seconds=1.5)


def test_a_number_is_read_without_a_library(tmp_path: Path) -> None:
    parties = Parties(tmp_path)
    for name in ("ann", "bob"):
        pem = TlsFolder(parties.issue(FarmRole.SUBMIT, name, hosts=())).read().certificate
        assert serial_of(pem) == x509.load_pem_x509_certificate(pem).serial_number


@given(st.binary(max_size=60))
@example(b"\x30\x06\x30\x04\xa0\x02\x05\x00")
def test_a_number_or_a_value_error(noise: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        serial_of(noise)
    with contextlib.suppress(ValueError):
        assert isinstance(serial_of(ssl.DER_cert_to_PEM_cert(noise).encode()), int)


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "revoked.json"
    file.write_text(revoked_text([ROW]))
    assert read_revoked(file) == (ROW,)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"version": 2, "revoked": []}',
        '{"version": 1, "revoked": [{"serial": "1f"}]}',
        listing("?", ROW.holder),
        listing("1", 7),
        listing("1", "ann"),
    ],
)
def test_what_is_no_list_of_them_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "revoked.json"
    file.write_text(content)
    with pytest.raises(SettingsError, match="not a list of revoked certificates") as refused:
        RevokedCertificates(file)
    assert "tilefarm pki revoke" in refused.value.hint


def test_a_file_that_is_gone_lets_nobody_in(tmp_path: Path) -> None:
    file = tmp_path / "revoked.json"
    with pytest.raises(SettingsError, match="No such file"):
        RevokedCertificates(file)
    file.write_text(revoked_text([]))
    table = RevokedCertificates(file)
    folder = Parties(tmp_path).issue(FarmRole.SUBMIT, "ann", hosts=())
    pem = TlsFolder(folder).read().certificate
    table.require_good(pem)
    file.write_text(
        revoked_text(
            [RevokedCertificate(serial=f"{serial_of(pem):x}", holder=ROW.holder, at_seconds=0.0)]
        )
    )
    with pytest.raises(CertificateError, match="was revoked"):
        table.require_good(pem)
    file.unlink()
    with pytest.raises(SettingsError, match="No such file"):
        table.require_good(pem)


def test_without_certificates_there_are_none_to_revoke(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--revoked without --tls"):
        security("secret", None, tls=None, audit=None, revoked=tmp_path / "revoked.json")
