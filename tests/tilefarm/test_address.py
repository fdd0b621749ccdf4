"""Addresses: what is one, what is none."""

from __future__ import annotations

import pytest
from tilefarm.address import check_address, is_loopback
from tilefarm.errors import SettingsError


@pytest.mark.parametrize(
    "address", ["127.0.0.1:9190", "farm:1", "[::1]:65535", "unix:/run/t.sock", "a.b-c:80"]
)
def test_addresses(address: str) -> None:
    check_address(address)


def test_any_free_port_is_an_address_to_listen_at_only() -> None:
    check_address("127.0.0.1:0", free_port=True)
    with pytest.raises(SettingsError, match="no port 0"):
        check_address("127.0.0.1:0")


@pytest.mark.parametrize(
    "address",
    ["", "farm", "127.0.0.1", ":9190", "farm:", "farm:x", "farm:-1", "farm:²", "::1:90", "unix:"],
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(SettingsError, match="is not host:port or unix:/path"):
        check_address(address)


@pytest.mark.parametrize("port", ["65536", "999999"])
def test_ports_do_not_wrap_around(port: str) -> None:
    with pytest.raises(SettingsError, match=f"no port {port}"):
        check_address(f"farm:{port}")


@pytest.mark.parametrize(
    ("address", "is_ours"),
    [
        ("127.0.0.1:1", True),
        ("[::1]:1", True),
        ("localhost:1", True),
        ("unix:/run/t.sock", True),
        ("10.0.0.1:1", False),
        ("hub.lab:1", False),
    ],
)
def test_loopback_is_what_only_this_machine_reaches(address: str, is_ours: bool) -> None:
    assert is_loopback(address) == is_ours
