"""A record's way to bytes and back, and the values that messages of both services hold.

Decoding raises ValueError on whatever is not a record: a digest of another length, an unspecified
enum, an outcome that is missing, a number that cannot be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import DecodeError, Message

from tilefarm.digest import Digest
from tilefarm.rpc.nothing import Nothing
from tilefarm.rpc.ranges import require_ranges

_M = TypeVar("_M", bound=Message)
_T = TypeVar("_T")
_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class Codec(Generic[_T]):
    """One record's way to bytes and back; `message` is the full name of its message."""

    message: str
    encode: Callable[[_T], bytes]
    decode: Callable[[bytes], _T]


def codec(kind: type[_M], to_wire: Callable[[_T], _M], from_wire: Callable[[_M], _T]) -> Codec[_T]:
    """The codec between a record and the message of `kind` that carries it."""
    return Codec(
        message=kind.DESCRIPTOR.full_name,
        encode=lambda record: to_wire(record).SerializeToString(),
        decode=lambda content: from_wire(parsed(kind, content)),
    )


def empty(kind: type[_M]) -> Codec[Nothing]:
    """The codec of a message without fields."""
    return codec(kind, lambda _: kind(), lambda _: Nothing())


def parsed(kind: type[_M], content: bytes) -> _M:
    """The message in these bytes.

    Raises:
        ValueError: they are none, or one of its numbers cannot be.
    """
    try:
        message = kind.FromString(content)
    except DecodeError as error:
        raise ValueError(f"not a {kind.DESCRIPTOR.full_name}: {error}") from None
    require_ranges(message)
    return message


def known(table: Mapping[_K, _V], number: _K) -> _V:
    """What an enum's number stands for.

    Raises:
        ValueError: it stands for nothing.
    """
    try:
        return table[number]
    except KeyError:
        raise ValueError(f"no such enum value: {number}") from None


def digest_to_wire(digest: Digest | None) -> bytes:
    """A digest's 32 bytes; none for no digest."""
    return bytes.fromhex(digest.hex) if digest else b""


def digest_from_wire(content: bytes) -> Digest:
    """The digest of these bytes.

    Raises:
        ValueError: they are not 32.
    """
    return Digest(content.hex())


def optional_digest_from_wire(content: bytes) -> Digest | None:
    """Like `digest_from_wire`; no bytes are no digest."""
    return digest_from_wire(content) if content else None
