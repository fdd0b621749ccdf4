"""What a server tells its supervisor, heard at the other end of the socket."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path

import pytest

from device_server.server import lifetime
from device_server.server.supervisor import Supervisor


def hearing(address: str) -> socket.socket:
    ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ear.settimeout(30.0)
    ear.bind(address)
    return ear


def test_the_environment_says_who_watches() -> None:
    of = Supervisor.of_environment
    assert of({}, 7) == Supervisor()
    assert of({"WATCHDOG_USEC": "5"}, 7) == Supervisor()
    assert of({"NOTIFY_SOCKET": "/run/n"}, 7) == Supervisor(address="/run/n")
    assert of({"NOTIFY_SOCKET": "@n"}, 7).address == "\0n"
    watched = {"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "3000000"}
    assert of(watched, 7).limit_seconds == 3.0
    assert of(watched | {"WATCHDOG_PID": "7"}, 7).limit_seconds == 3.0
    assert of(watched | {"WATCHDOG_PID": "8"}, 7).limit_seconds is None
    assert of(watched | {"WATCHDOG_USEC": "soon"}, 7).limit_seconds is None


def test_an_abstract_socket_is_heard_too() -> None:
    name = f"\0tilefarm-{os.getpid()}"
    with hearing(name) as ear:
        Supervisor(address=name).ready("127.0.0.1:1")
        assert ear.recv(200) == b"READY=1\nSTATUS=serves at 127.0.0.1:1"


def test_a_supervisor_that_has_gone_is_no_reason_to_end(tmp_path: Path) -> None:
    Supervisor(address=str(tmp_path / "nobody")).ready("127.0.0.1:1")


def test_a_server_is_ready_alive_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with hearing(str(tmp_path / "notify")) as ear:
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "30000")
        monkeypatch.delenv("WATCHDOG_PID", raising=False)

        async def main(stopping: asyncio.Event) -> None:
            lifetime.announce("127.0.0.1:9190")
            while not heard.count(b"WATCHDOG=1") >= 2:
                heard.append(await asyncio.to_thread(ear.recv, 200))
            os.kill(os.getpid(), signal.SIGTERM)
            await stopping.wait()

        heard: list[bytes] = []
        lifetime.run_until_stopped(main, die_with_parent=False)
        ear.setblocking(False)
        while b"STOPPING=1\nSTATUS=ends" not in heard:
            heard.append(ear.recv(200))
    assert b"READY=1\nSTATUS=serves at 127.0.0.1:9190" in heard
    assert capsys.readouterr().out == "ready 127.0.0.1:9190\n"
