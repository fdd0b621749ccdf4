"""The farm's side of signatures: keys as files, one that signs and its public half for devices."""

from __future__ import annotations

import base64
from functools import partial
from pathlib import Path

from tilefarm.digest import Digest
from tilefarm.errors import SettingsError
from tilefarm.trust.secret_file import write_new
from tilefarm.trust.signing import (
    PRIVATE,
    PUBLIC,
    Signer,
    key_in,
    secret_signature,
    signed_text,
    unsigned,
)


def key_pair() -> tuple[bytes, bytes]:
    """The texts of a fresh private key and of its public half."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    halves = ((PRIVATE, key.private_bytes_raw()), (PUBLIC, key.public_key().public_bytes_raw()))
    private, public = (kind + base64.b64encode(half) for kind, half in halves)
    return private, public


def create_key_pair(private: Path, public: Path) -> None:
    """A fresh pair, in files that were not there before.

    Raises:
        SettingsError: a file is there already, or cannot be written.
    """
    for path, text in zip((private, public), key_pair(), strict=True):
        write_new(path, text + b"\n", mode=0o600)


def signer(key: bytes | None) -> Signer:
    """What signs artifacts with a key; without one their signatures are empty.

    Raises:
        SettingsError: the key is a public one, or damaged.
    """
    if key is None:
        return unsigned
    if key.startswith(PUBLIC):
        raise SettingsError(
            "--signing-key: a public key signs nothing",
            "devices take FILE.pub of `tilefarm pki key --out FILE`; who submits takes FILE",
        )
    if not key.startswith(PRIVATE):
        return partial(secret_signature, key)
    return _ed25519(key_in(key, PRIVATE))


def _ed25519(private: bytes) -> Signer:
    # Loading the library takes longer than what most commands do, which sign nothing.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(private)

    def sign(artifact: Digest) -> bytes:
        return key.sign(signed_text(artifact))

    return sign
