"""Signatures of artifacts: who can call a device but has not the farm's key cannot run code there.

A signature is that of the artifact's digest, Ed25519: who submits has the private key, devices have
its public half, which signs nothing. Farms from before 2.1 have one secret on both sides, and
HMAC-SHA256; it is still understood. Keys are texts in files, and travel on no wire. Here is what a
device needs, which checks; `driver.farm.signing` signs.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Callable
from typing import Final, TypeAlias

from tilefarm.digest import Digest
from tilefarm.errors import ForbiddenError, SettingsError
from tilefarm.trust import ed25519

_PURPOSE: Final = b"tilefarm artifact "
PRIVATE: Final = b"ed25519-private:"
PUBLIC: Final = b"ed25519-public:"
"""What the texts of keys begin with; 32 bytes in base64 follow."""

_REMEMBERED: Final = 4096

Signer: TypeAlias = Callable[[Digest], bytes]
"""The signature of an artifact."""


def unsigned(_: Digest) -> bytes:
    """The signature of who has no key: none."""
    return b""


class Signatures:
    """Tells signatures of a farm's key; those that were good are remembered.

    Args:
        key: a public key, or the secret of a farm that has one for both sides; None: nothing has
            to be signed.

    Raises:
        SettingsError: the key is a private one, or damaged.
    """

    def __init__(self, key: bytes | None) -> None:
        if key is not None and key.startswith(PRIVATE):
            raise SettingsError(
                "--signing-key: a private key is none for a device, whose host others may get into",
                "give them FILE.pub of `tilefarm pki key --out FILE`",
            )
        self._key = key
        public = key is not None and key.startswith(PUBLIC)
        self._public = key_in(key, PUBLIC) if key is not None and public else None
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
            return ed25519.is_signature(self._public, signed_text(artifact), signature)
        return hmac.compare_digest(secret_signature(key, artifact), signature)


def secret_signature(secret: bytes, artifact: Digest) -> bytes:
    """The signature of farms that have one secret on both sides."""
    return hmac.digest(secret, signed_text(artifact), "sha256")


def signed_text(artifact: Digest) -> bytes:
    """What is signed, so that no signature for another purpose is one of an artifact."""
    return _PURPOSE + artifact.hex.encode()


def key_in(text: bytes, kind: bytes) -> bytes:
    """The 32 bytes of a key's text of that kind.

    Raises:
        SettingsError: it is damaged.
    """
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
