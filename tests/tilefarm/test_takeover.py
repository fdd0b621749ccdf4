"""A port passes from one socket to the next: new connections go where they are led."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tilefarm.rpc.takeover import lead_to, listening_sockets, share


@pytest.fixture
def owned() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def listener(owned: ExitStack, port: int = 0, *, sharing: bool = True) -> socket.socket:
    made = owned.enter_context(socket.socket())
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, sharing)
    made.bind(("127.0.0.1", port))
    made.listen(64)
    made.setblocking(False)
    return made


def arrived(owned: ExitStack, port: int, listeners: list[socket.socket]) -> list[int]:
    """How many of 32 connections each gets."""
    for _ in range(32):
        owned.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
    return [accepted(owned, one) for one in listeners]


def accepted(owned: ExitStack, listening: socket.socket) -> int:
    count = 0
    while True:
        try:
            owned.enter_context(listening.accept()[0])
        except BlockingIOError:
            return count
        count += 1


def test_a_port_is_shared_with_those_who_ask_once_its_owner_agrees(owned: ExitStack) -> None:
    first = listener(owned, sharing=False)
    port = first.getsockname()[1]
    with pytest.raises(OSError, match="in use"):
        listener(owned, port)
    share(port)
    with pytest.raises(OSError, match="in use"):
        listener(owned, port, sharing=False)
    second = listener(owned, port)
    assert listening_sockets(port) == 2
    assert lead_to(port, 1)
    assert arrived(owned, port, [first, second]) == [0, 32]


def test_the_last_socket_takes_the_place_of_one_that_is_closed(owned: ExitStack) -> None:
    first = listener(owned)
    port = first.getsockname()[1]
    others = [listener(owned, port) for _ in range(3)]
    for place, wanted in enumerate(([32, 0, 0, 0], [0, 32, 0, 0], [0, 0, 32, 0], [0, 0, 0, 32])):
        assert lead_to(port, place)
        assert arrived(owned, port, [first, *others]) == wanted
    first.close()
    lead_to(port, 0)
    assert arrived(owned, port, others) == [0, 0, 32]


def test_a_place_where_nobody_is_loses_no_connection(owned: ExitStack) -> None:
    first = listener(owned)
    port = first.getsockname()[1]
    second = listener(owned, port)
    assert lead_to(port, 7)
    assert sum(arrived(owned, port, [first, second])) == 32


def test_sockets_at_other_ports_are_left_alone(owned: ExitStack) -> None:
    first, other = listener(owned), listener(owned, sharing=False)
    share(first.getsockname()[1])
    assert other.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT) == 0
    assert listening_sockets(other.getsockname()[1]) == 1
