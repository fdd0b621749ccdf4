"""The bad network itself: what it lets pass, keeps back, damages and breaks."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
from kit.farm.in_process import eventually
from kit.farm.proxy import Proxy

SHORT_SECONDS = 0.15


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """In front of a server that says everything once more."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def echo(peer: socket.socket) -> None:
            with closing(peer), suppress(OSError):
                while data := peer.recv(1 << 16):
                    peer.sendall(data)

        def serve() -> None:
            with suppress(OSError):
                while True:
                    peer, _ = listening.accept()
                    threading.Thread(target=echo, args=(peer,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        with Proxy(f"127.0.0.1:{listening.getsockname()[1]}") as running:
            yield running
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def client(proxy: Proxy) -> Iterator[socket.socket]:
    host, _, port = proxy.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connected:
        yield connected


def silent(client: socket.socket) -> bool:
    client.settimeout(SHORT_SECONDS)
    try:
        client.recv(1)
    except TimeoutError:
        return True
    finally:
        client.settimeout(10)
    return False


def received(client: socket.socket, nbytes: int) -> bytes:
    data = b""
    while len(data) < nbytes and (piece := client.recv(nbytes - len(data))):
        data += piece
    return data


def test_bytes_pass(client: socket.socket) -> None:
    client.sendall(b"x" * 300_000)
    assert received(client, 300_000) == b"x" * 300_000


def test_what_is_cut_arrives_after_the_healing(proxy: Proxy, client: socket.socket) -> None:
    proxy.cut()
    client.sendall(b"patience")
    assert silent(client)
    proxy.heal()
    assert received(client, 8) == b"patience"


def test_one_way_is_cut(proxy: Proxy, client: socket.socket) -> None:
    proxy.cut("down")
    client.sendall(b"there")
    assert silent(client)
    eventually(lambda: proxy.passed("up") == 5)
    proxy.heal()
    assert received(client, 5) == b"there"


def test_one_bit_is_turned_over(proxy: Proxy, client: socket.socket) -> None:
    proxy.flip("up", after_nbytes=2)
    client.sendall(b"00000")
    assert received(client, 5) == b"00 00"
    client.sendall(b"00000")
    assert received(client, 5) == b"00000"


def test_a_connection_breaks_after_so_many_bytes(proxy: Proxy, client: socket.socket) -> None:
    proxy.truncate("up", after_nbytes=3)
    client.sendall(b"12345")
    data = b""
    with suppress(ConnectionResetError):
        data = received(client, 5)
    assert data in (b"", b"1", b"12", b"123")
    assert proxy.passed("down") <= 3


def test_all_connections_break_and_both_parties_hear_of_it(
    proxy: Proxy, client: socket.socket
) -> None:
    client.sendall(b"1")
    assert received(client, 1) == b"1"
    proxy.reset()
    with pytest.raises(ConnectionResetError):
        client.recv(1)


def test_half_open(proxy: Proxy, client: socket.socket) -> None:
    client.sendall(b"1")
    assert received(client, 1) == b"1"
    proxy.half_open()
    assert silent(client)


def test_a_delay(proxy: Proxy, client: socket.socket) -> None:
    proxy.delay(2 * SHORT_SECONDS)
    client.sendall(b"1")
    assert silent(client)
    assert received(client, 1) == b"1"
