"""Peers that do not answer, as gRPC tells of them; those with certificates are tested with TLS."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tilefarm.errors import DeviceLostError, DeviceSilentError
from tilefarm.rpc import methods
from tilefarm.rpc.caller import Caller
from tilefarm.rpc.empty import Empty
from tilefarm.trust.tls import Credentials


def told(
    address: str, seconds: float = 60.0, lost: type[DeviceLostError] = DeviceLostError
) -> DeviceLostError:
    caller = Caller(address, Credentials(token="t"), peer="device d", lost=lost)
    with pytest.raises(DeviceLostError, match=r"device d at .* does not answer: ") as silent:
        caller.unary(methods.LIST_DEVICES, Empty(), timeout_seconds=seconds)
    caller.close()
    assert silent.value.hint
    return silent.value


def test_a_socket_that_is_not_there(tmp_path: Path) -> None:
    assert "there is no such socket" in told(f"unix:{tmp_path}/nosuch").what


def test_one_that_listens_and_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        error = told(f"127.0.0.1:{mute.getsockname()[1]}", seconds=0.3)
    assert "the time for an answer is over" in error.what


def test_one_that_does_not_listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    assert "nobody listens there" in told(f"127.0.0.1:{port}").what


@pytest.mark.parametrize(("listens", "kind"), [(True, DeviceSilentError), (False, DeviceLostError)])
def test_who_is_gone_is_not_silent(listens: bool, kind: type[DeviceLostError]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        if not listens:
            mute.close()
        assert type(told(address, seconds=0.3, lost=DeviceSilentError)) is kind
