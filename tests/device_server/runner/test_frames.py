"""Replies of the runner, whole and damaged."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefarm.errors import InfraError
from tilefarm.measurement import Counters

from device_server.runner.frames import (
    Account,
    Calls,
    FailedReply,
    FailureKind,
    Fault,
    Ready,
    Reply,
    Started,
    read_reply,
)


class Bytes:
    """A stream of given bytes, then of zeros."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def take(self, count: int) -> bytes:
        taken, self._content = self._content[:count], self._content[count:]
        return taken.ljust(min(count, 1 << 16), b"\0")


def reply_of(payload: bytes) -> Reply:
    return read_reply(Bytes(struct.pack("<I", len(payload)) + payload))


def text(words: bytes) -> bytes:
    return struct.pack("<I", len(words)) + words


def test_replies_by_kind() -> None:
    assert reply_of(b"\x01" + text(b"box") + text(b"id") + b"\1") == Ready("box", "id", True)
    assert reply_of(b"\x05" + struct.pack("<i", 7)) == Started(7)
    counters = struct.pack("<Q21Q", 3, 5, *[0] * 20)
    assert reply_of(b"\x06\0" + struct.pack("<I", 1) + counters + struct.pack("<I", 0)) == Account(
        None, (Calls(3, Counters(cycles=5)),), ()
    )
    failed = b"\x06\1\x02" + text(b"why") + bytes(8)
    assert reply_of(failed) == Account(FailedReply(FailureKind.RUNTIME, "why"), (), ())
    assert reply_of(b"\x03\x02" + text(b"why")) == FailedReply(FailureKind.RUNTIME, "why")
    fault = struct.pack("<BiiQQiB", 4, 11, 1, 16, 2**64 - 1, -1, 0)
    assert reply_of(fault) == Fault(
        signal=11, address=16, artifact_offset=None, system_call=None, memory_exhausted=False
    )


@given(st.binary(max_size=200))
def test_nonsense_is_a_reply_or_an_infra_error(content: bytes) -> None:
    with contextlib.suppress(InfraError):
        reply_of(content)


def test_an_absurd_length_is_refused_before_it_is_read() -> None:
    with pytest.raises(InfraError, match="4294967295 bytes"):
        read_reply(Bytes(b"\xff" * 4))
