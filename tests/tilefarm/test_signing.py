"""Which key signs, which one tells signatures, and what is said of one in the wrong place."""

from __future__ import annotations

import pytest
from tilefarm.digest import Digest
from tilefarm.errors import ForbiddenError, SettingsError
from tilefarm.trust import ed25519
from tilefarm.trust.signing import Signatures, key_pair, sign

ARTIFACT = Digest.of(b"code")
PRIVATE, PUBLIC = (half.encode() for half in key_pair(b"k" * 32))


def test_a_public_key_tells_what_the_private_one_signed() -> None:
    signatures = Signatures(PUBLIC)
    signature = sign(PRIVATE, ARTIFACT)
    signatures.require(ARTIFACT, signature)
    with pytest.raises(ForbiddenError, match="signed with another key"):
        signatures.require(Digest.of(b"other code"), signature)
    with pytest.raises(ForbiddenError, match="is not signed"):
        signatures.require(ARTIFACT, b"")


def test_a_signature_that_was_good_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    signatures = Signatures(PUBLIC)
    signature = sign(PRIVATE, ARTIFACT)
    signatures.require(ARTIFACT, signature)
    monkeypatch.setattr(ed25519, "is_signature", lambda *_: False)
    signatures.require(ARTIFACT, signature)
    with pytest.raises(ForbiddenError):
        signatures.require(Digest.of(b"other code"), signature)


def test_without_a_key_nothing_is_signed_and_nothing_asked_for() -> None:
    assert sign(None, ARTIFACT) == b""
    Signatures(None).require(ARTIFACT, b"")


def test_a_key_in_the_wrong_place_is_told() -> None:
    with pytest.raises(SettingsError, match="a public key signs nothing") as told:
        sign(PUBLIC, ARTIFACT)
    assert "who submits takes FILE" in told.value.hint
    with pytest.raises(SettingsError, match="a private key is none for a device") as told:
        Signatures(PRIVATE)
    assert "FILE.pub" in told.value.hint


@pytest.mark.parametrize("rest", [b"", b"?", b"QUJD", b"\xff"])
def test_a_damaged_key_is_told(rest: bytes) -> None:
    with pytest.raises(SettingsError, match="32 bytes in base64") as told:
        sign(b"ed25519-private:" + rest, ARTIFACT)
    assert "tilefarm pki key" in told.value.hint
    with pytest.raises(SettingsError, match="32 bytes in base64"):
        Signatures(b"ed25519-public:" + rest)
