"""The distribution for boards: built, installed alone, and a farm served with it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tilefarm.target import TARGETS
from tilefarm.trust.tls import Credentials

from device_server.tracker.client import TrackerClient

from .building import building
from .deployed import DEPLOY

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip: list[str | Path] = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps"]
    with building():
        subprocess.run([*pip, "-w", folder, DEPLOY / "device"], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment with the distribution and what it asks for."""
    home = tmp_path_factory.mktemp("board")
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    subprocess.run([home / "bin" / "pip", "install", "-q", wheel], check=True)
    return home / "bin"


@contextmanager
def serving(*command: str | Path) -> Iterator[str]:
    """The address of a server that says when it is ready; it must end well."""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as server:
        try:
            assert server.stdout is not None
            word, _, address = server.stdout.readline().strip().partition(" ")
            assert word == "ready"
            yield address
        finally:
            server.terminate()
    assert server.returncode == 0


def test_it_holds_what_serves_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {
        "device_server",
        "tilefarm",
        "tilefarm_device",
    }
    built = {name for name in names if name.startswith("device_server/lib/")}
    assert {"device_server/lib/libtilefarm_vta.so", "device_server/lib/vta-runner"} <= built
    assert not [name for name in names if name.endswith((".cc", ".h")) or "/programs/" in name]
    assert wheel.stat().st_size < 2**20


def test_a_board_serves_without_numpy(programs: Path, tmp_path: Path) -> None:
    listed = subprocess.check_output([programs / "pip", "list", "--format=freeze"], text=True)
    installed = {line.split("==")[0] for line in listed.splitlines()}
    assert installed >= {"grpcio", "protobuf", "tilefarm-device"}
    assert not installed & {"numpy", "cryptography", "llvmlite", "ray"}

    subprocess.run([programs / "tilefarm-device", "--self-test"], check=True)
    token = tmp_path / "farm.token"
    with (
        serving(programs / "tilefarm-tracker", "--token-file", token) as tracker,
        serving(
            *(programs / "tilefarm-device", "--name", "board1", "--tracker", tracker),
            *("--token-file", token, "--folder", tmp_path / "uploads"),
        ) as device,
        TrackerClient(tracker, Credentials(token=token.read_text().strip())) as client,
    ):
        lease = client.acquire(TARGETS["sim"].digest, wait_seconds=60.0, owner="test")
        assert lease is not None
        assert lease.device.address == device


def test_what_is_wrong_is_told_without_a_traceback(programs: Path) -> None:
    for command, told in {
        ("tilefarm-device", "--name", "a b", "--tracker", "h:1"): "needs --token-file",
        ("tilefarm-tracker",): "a server needs --token-file or --tokens",
        ("tilefarm-device", "--self-test", "--target", "nothing"): "nothing",
    }.items():
        done = subprocess.run(
            [programs / command[0], *command[1:]],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": os.environ["PATH"]},
        )
        assert done.returncode == 2
        assert told in done.stderr
        assert "Traceback" not in done.stderr
