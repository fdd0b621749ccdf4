"""Content digests: the identity of every record and blob that crosses a process."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

_HEX_LENGTH: Final = 64
_HEX_DIGITS: Final = "0123456789abcdef"
_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True, order=True)
class Digest:
    """A SHA-256 in lowercase hexadecimal; equal content, equal digest."""

    hex: str

    def __post_init__(self) -> None:
        if len(self.hex) != _HEX_LENGTH or self.hex.strip(_HEX_DIGITS):
            raise ValueError(f"not a SHA-256 in lowercase hexadecimal: {self.hex!r}")

    # One is looked up in tables many times a trial; the made one builds a tuple first.
    def __hash__(self) -> int:
        return hash(self.hex)

    @classmethod
    def of(cls, content: bytes | bytearray | memoryview) -> Self:
        """The digest of bytes."""
        return cls(hashlib.sha256(content).hexdigest())

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """The digest of a file's bytes, of which only a few are held at once.

        Raises:
            OSError: it cannot be read.
        """
        with path.open("rb") as stream:
            return cls(hashlib.file_digest(stream, "sha256").hexdigest())

    @classmethod
    def of_json(cls, document: object) -> Self:
        """The digest of a JSON document in its canonical form."""
        return cls.of(canonical_json(document).encode())

    @property
    def short(self) -> str:
        """Twelve digits: enough to tell records of one run apart in a log line."""
        return self.hex[:12]

    def __str__(self) -> str:
        return self.hex


def canonical_json(document: object) -> str:
    """The one text of a JSON document: sorted keys, no spaces, no NaN.

    Raises:
        ValueError: the document holds NaN or an infinity, which JSON cannot say.
    """
    return _CANONICAL.encode(document)
