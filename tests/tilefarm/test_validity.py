"""The days of a certificate, read by hand: those that the library for certificates says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.farm.parties import Parties
from tilefarm.errors import SettingsError
from tilefarm.trust.access import FarmRole
from tilefarm.trust.tls import TlsFolder
from tilefarm.trust.validity import Validity, require_current, validity_of

from driver.farm.authority import certificate_in


def framed(text: str) -> bytes:
    return f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n".encode()


def test_it_reads_what_the_library_reads(tmp_path: Path) -> None:
    folder = Parties(tmp_path).issue(FarmRole.DEVICE, "board")
    told = certificate_in(folder)
    assert validity_of(TlsFolder(folder).read().certificate) == Validity(
        not_before=told.not_before, not_after=told.not_after
    )


def test_years_from_2050_on_are_written_in_the_long_form(tmp_path: Path) -> None:
    folder = Parties(tmp_path).issue(FarmRole.DEVICE, "board", age_days=-40 * 365.0)
    found = validity_of(TlsFolder(folder).read().certificate)
    assert found.not_after == certificate_in(folder).not_after
    assert found.not_after > 80 * 365.25 * 86400.0  # beyond 2050


@given(st.binary(max_size=60))
def test_anything_else_is_no_certificate(content: bytes) -> None:
    import base64

    with pytest.raises(ValueError):  # noqa: PT011
        validity_of(framed(base64.b64encode(content).decode()))


def test_a_folder_without_a_certificate_is_named(tmp_path: Path) -> None:
    folder = Parties(tmp_path).issue(FarmRole.DEVICE, "board")
    identity = folder / "identity.pem"
    key = identity.read_bytes().partition(b"-----BEGIN CERTIFICATE-----")[0]
    identity.write_bytes(key + framed("MAAA"))
    with pytest.raises(SettingsError, match=r"identity.pem is no certificate of a farm") as refused:
        require_current(TlsFolder(folder), now_seconds=0.0)
    assert "pki issue" in refused.value.hint
