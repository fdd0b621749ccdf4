"""Which key tells signatures, and what is said of one in the wrong place."""

from __future__ import annotations

import pytest
from tilefarm.digest import Digest
from tilefarm.errors import ForbiddenError, SettingsError
from tilefarm.trust import ed25519
from tilefarm.trust.signing import Signatures

from driver.farm.signing import key_pair, signer

ARTIFACT = Digest.of(b"code")
PRIVATE, PUBLIC = key_pair()


def test_a_public_key_tells_what_the_private_one_signed() -> None:
    signatures = Signatures(PUBLIC)
    signature = signer(PRIVATE)(ARTIFACT)
    signatures.require(ARTIFACT, signature)
    with pytest.raises(ForbiddenError, match="signed with another key"):
        signatures.require(Digest.of(b"other code"), signature)
    with pytest.raises(ForbiddenError, match="is not signed"):
        signatures.require(ARTIFACT, b"")


def test_a_signature_that_was_good_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    signatures = Signatures(PUBLIC)
    signature = signer(PRIVATE)(ARTIFACT)
    signatures.require(ARTIFACT, signature)
    monkeypatch.setattr(ed25519, "is_signature", lambda *_: False)
    signatures.require(ARTIFACT, signature)
    with pytest.raises(ForbiddenError):
        signatures.require(Digest.of(b"other code"), signature)


def test_without_a_key_nothing_is_signed_and_nothing_asked_for() -> None:
    assert signer(None)(ARTIFACT) == b""
    Signatures(None).require(ARTIFACT, b"")


def test_a_key_in_the_wrong_place_is_told() -> None:
    with pytest.raises(SettingsError, match="a public key signs nothing") as told:
        signer(PUBLIC)
    assert "who submits takes FILE" in told.value.hint
    with pytest.raises(SettingsError, match="a private key is none for a device") as told:
        Signatures(PRIVATE)
    assert "FILE.pub" in told.value.hint


@pytest.mark.parametrize("rest", [b"", b"?", b"QUJD", b"\xff"])
def test_a_damaged_key_is_told(rest: bytes) -> None:
    with pytest.raises(SettingsError, match="32 bytes in base64") as told:
        signer(b"ed25519-private:" + rest)
    assert "tilefarm pki key" in told.value.hint
    with pytest.raises(SettingsError, match="32 bytes in base64"):
        Signatures(b"ed25519-public:" + rest)


@pytest.mark.parametrize(
    ("private", "public", "signature"),
    [
        (
            b"ed25519-private:a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=",
            b"ed25519-public:gyClGXfYw4yopJJ8Zw31gh5El2GUXhXp77JqFQnSMOo=",
            "bce5f77b785674ee1f9ac55a1cd60275d057338e24b9f5044a0e2d3eeb01ab5e"
            "87ec38705ad6a1084523cccb260d9ee9adacbd3c132b917776b2b6a15e113d0f",
        ),
        (b"k" * 32, b"k" * 32, "33d027072dc14f805ffe42f3ef03bb0c585bd7889c00f201c672aa86ba93970d"),
    ],
    ids=["pair", "secret"],
)
def test_signatures_of_earlier_versions_hold(private: bytes, public: bytes, signature: str) -> None:
    """Both sides of a farm may be older than the other."""
    assert signer(private)(ARTIFACT).hex() == signature
    Signatures(public).require(ARTIFACT, bytes.fromhex(signature))
