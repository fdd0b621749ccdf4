"""Signatures are those of RFC 8032, and nothing else is taken for one."""

from __future__ import annotations

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ed25519 as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from tilefarm.trust.ed25519 import is_signature

ORDER = 2**252 + 27742317777372353535851937790883648493
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
        "387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
        "4a7c15e9716ed28dc027beceea1ec40a",
    ),
]
"""Section 7.1, tests 1 to 3: private key, public key, message, signature."""

KEYS = st.binary(min_size=32, max_size=32)


@pytest.mark.parametrize("vector", VECTORS, ids=["1", "2", "3"])
def test_the_vectors_of_the_standard(vector: tuple[str, ...]) -> None:
    _, public, message, signature = map(bytes.fromhex, vector)
    assert is_signature(public, message, signature)
    assert not is_signature(public, message + b"x", signature)


@settings(deadline=None, max_examples=examples(30))
@given(private=KEYS, message=st.binary(max_size=80))
def test_it_knows_what_a_library_signed(private: bytes, message: bytes) -> None:
    key = reference.Ed25519PrivateKey.from_private_bytes(private)
    public, signature = key.public_key().public_bytes_raw(), key.sign(message)
    assert is_signature(public, message, signature)
    assert not is_signature(public, message + b"x", signature)


@settings(deadline=None, max_examples=examples(30))
@given(at=st.integers(0, 511), public=st.booleans())
def test_one_other_bit_is_another_signature(at: int, public: bool) -> None:
    _, key, message, signature = map(bytes.fromhex, VECTORS[2])
    changed = bytearray(key if public else signature)
    at %= len(changed) * 8
    changed[at // 8] ^= 1 << at % 8
    shown = (bytes(changed), message, signature) if public else (key, message, bytes(changed))
    assert not is_signature(*shown)


@settings(deadline=None, max_examples=examples(30))
@given(public=st.binary(max_size=40) | KEYS, signature=st.binary(max_size=70))
def test_noise_is_no_signature(public: bytes, signature: bytes) -> None:
    assert not is_signature(public, b"message", signature)


def test_a_signature_has_one_spelling() -> None:
    _, public, message, signature = map(bytes.fromhex, VECTORS[1])
    answer = int.from_bytes(signature[32:], "little") + ORDER
    again = signature[:32] + answer.to_bytes(32, "little")
    assert not is_signature(public, message, again)
    with pytest.raises(InvalidSignature):
        reference.Ed25519PublicKey.from_public_bytes(public).verify(again, message)
