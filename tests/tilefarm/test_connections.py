"""Connections on which nobody says who they are end where there are many, and no others."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from kit.growth import growth_nbytes
from tilefarm.rpc import descriptors
from tilefarm.rpc.connections import Connections

MANY = 5


class Site:
    """A listening socket, and connections to it with both of their ends."""

    def __init__(self, owned: ExitStack, host: str) -> None:
        self._owned = owned
        self._listener = owned.enter_context(socket.create_server((host, 0), family=family(host)))
        self._host = host
        self.port = self._listener.getsockname()[1]

    def connect(self) -> socket.socket:
        """The far end of a new connection."""
        address = (self._host, self.port)
        far = self._owned.enter_context(socket.create_connection(address, timeout=60))
        self._owned.enter_context(self._listener.accept()[0])
        return far


def family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def name(far: socket.socket) -> str:
    """As gRPC calls the other end of a connection that came from there."""
    host, port = far.getsockname()[:2]
    return f"ipv6:%5B{host}%5D:{port}" if ":" in host else f"ipv4:{host}:{port}"


def has_ended(far: socket.socket) -> bool:
    far.setblocking(False)
    try:
        return far.recv(1) == b""
    except BlockingIOError:
        return False


@pytest.fixture(params=["127.0.0.1", "::1"])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    with ExitStack() as owned:
        try:
            yield Site(owned, request.param)
        except OSError:
            pytest.skip(f"no {request.param} here")


def test_many_have_until_the_next_look(site: Site) -> None:
    known = Connections(2 * MANY)
    strangers = [site.connect() for _ in range(2 * MANY)]
    assert known.relieve(site.port) == 0
    late = [site.connect() for _ in range(MANY)]
    assert known.relieve(site.port) == 2 * MANY
    assert all(map(has_ended, strangers))
    assert not any(map(has_ended, late))


def test_few_are_left_alone(site: Site) -> None:
    known = Connections(2 * MANY)
    strangers = [site.connect() for _ in range(MANY)]
    assert [known.relieve(site.port) for _ in range(3)] == [0, 0, 0]
    assert not any(map(has_ended, strangers))


def test_those_whose_callers_were_let_in_stay(site: Site) -> None:
    known = Connections(2 * MANY)
    friends = [site.connect() for _ in range(3 * MANY)]
    for friend in friends:
        known.know(name(friend))
    strangers = [site.connect() for _ in range(2 * MANY)]
    assert [known.relieve(site.port) for _ in range(2)] == [0, 2 * MANY]
    assert all(map(has_ended, strangers))
    assert not any(map(has_ended, friends))


def test_of_callers_who_have_gone_nothing_is_kept(site: Site) -> None:
    known = Connections(2 * MANY)
    friend = site.connect()
    known.know(name(friend))
    opened = descriptors.open_descriptors()

    def come_and_go(number: int) -> None:
        known.know(f"ipv4:10.0.0.1:{number}")
        if number % (opened + 2 * MANY) == 0:
            known.relieve(site.port)

    assert growth_nbytes(come_and_go, 10 * (opened + 2 * MANY)) < 20_000
    strangers = [site.connect() for _ in range(2 * MANY)]
    assert [known.relieve(site.port) for _ in range(2)] == [0, 2 * MANY]
    assert all(map(has_ended, strangers))
    assert not has_ended(friend)


def test_room_is_made_as_far_as_the_system_allows() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
        assert descriptors.make_room(100) == 100
        assert descriptors.make_room(600) == 600
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 600
        few = Connections(1 << 30)
        assert not few.make_room()
        assert 64 <= few.most < 1 << 30
        assert Connections(64).make_room()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
