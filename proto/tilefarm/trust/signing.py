"""Signatures of artifacts: who can call a device but has not the farm's key cannot run code there.

A signature is that of the artifact's digest, Ed25519: who submits has the private key, devices have
its public half, which signs nothing. Farms from before 2.1 have one secret on both sides, and
HMAC-SHA256; it is still understood. Keys are texts in files, and travel on no wire.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import Final

from tilefarm.digest import Digest
from tilefarm.errors import ForbiddenError, SettingsError
from tilefarm.trust import ed25519

_PURPOSE: Final = b"tilefarm artifact "
_PRIVATE: Final = b"ed25519-private:"
_PUBLIC: Final = b"ed25519-public:"
_REMEMBERED: Final = 4096


def key_pair(secret: bytes) -> tuple[str, str]:
    """The texts of a private key and of its public half.

    Args:
        secret: 32 random bytes.
    """
    halves = ((_PRIVATE, secret), (_PUBLIC, ed25519.public_key(secret)))
    private, public = ((kind + base64.b64encode(key)).decode() for kind, key in halves)
    return private, public


def sign(key: bytes | None, artifact: Digest) -> bytes:
    """The signature of an artifact; empty without a key.

    Raises:
        SettingsError: the key is a public one, or damaged.
    """
    if key is None:
        return b""
    if key.startswith(_PUBLIC):
        raise SettingsError(
            "--signing-key: a public key signs nothing",
            "devices take FILE.pub of `tilefarm pki key --out FILE`; who submits takes FILE",
        )
    if key.startswith(_PRIVATE):
        return ed25519.sign(_key_in(key, _PRIVATE), _message(artifact))
    return hmac.digest(key, _message(artifact), "sha256")


class Signatures:
    """Tells signatures of a farm's key; those that were good are remembered.

    Args:
        key: a public key, or the secret of a farm that has one for both sides; None: nothing has
            to be signed.

    Raises:
        SettingsError: the key is a private one, or damaged.
    """

    def __init__(self, key: bytes | None) -> None:
        if key is not None and key.startswith(_PRIVATE):
            raise SettingsError(
                "--signing-key: a private key is none for a device, whose host others may get into",
                "give them FILE.pub of `tilefarm pki key --out FILE`",
            )
        self._key = key
        public = key is not None and key.startswith(_PUBLIC)
        self._public = _key_in(key, _PUBLIC) if key is not None and public else None
        self._good: set[tuple[Digest, bytes]] = set()

    def require(self, artifact: Digest, signature: bytes) -> None:
        """Nothing if a signature is good, or if none is asked for.

        Raises:
            ForbiddenError: it is absent, or another farm's.
        """
        if self._key is None or (artifact, signature) in self._good:
            return
        if not self._is_good(self._key, artifact, signature):
            fault = "is signed with another key" if signature else "is not signed"
            raise ForbiddenError(
                f"artifact {artifact.short} {fault}, and this device runs signed ones only",
                "--signing-key with the key that `tilefarm pki key` made for this farm",
            )
        if len(self._good) >= _REMEMBERED:
            self._good.clear()
        self._good.add((artifact, signature))

    def _is_good(self, key: bytes, artifact: Digest, signature: bytes) -> bool:
        if self._public is not None:
            return ed25519.is_signature(self._public, _message(artifact), signature)
        return hmac.compare_digest(sign(key, artifact), signature)


def _message(artifact: Digest) -> bytes:
    return _PURPOSE + artifact.hex.encode()


def _key_in(text: bytes, kind: bytes) -> bytes:
    try:
        key = base64.b64decode(text.removeprefix(kind), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != ed25519.KEY_NBYTES:
        raise SettingsError(
            f"--signing-key: not a key: {kind.decode()} goes on with 32 bytes in base64",
            "`tilefarm pki key --out FILE` makes a pair of keys",
        )
    return key
