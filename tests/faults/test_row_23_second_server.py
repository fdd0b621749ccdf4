"""Row 23: what a killed server leaves behind, and a second server where one lives."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from kit.farm.real_farm import CLI, RealFarm


def refused(farm: RealFarm, listen: str) -> str:
    """What a tracker says that may not listen there."""
    words = ["tracker", "--listen", listen, "--token-file", str(farm.token_file)]
    ended = subprocess.run(
        [*CLI, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    return ended.stderr


@pytest.mark.parametrize("kind", ["port", "unix socket"])
def test_a_second_server_is_refused_and_harms_nobody(
    real_farm: RealFarm, tmp_path: Path, kind: str
) -> None:
    listen = "127.0.0.1:0" if kind == "port" else f"unix:{tmp_path}/t.sock"
    tracker = real_farm.tracker(listen=listen)
    why = "the port is in use" if kind == "port" else "another server serves it"
    assert f"cannot listen on {tracker.address}: {why}" in refused(real_farm, tracker.address)
    real_farm.device(tracker.address)
    assert real_farm.lease(real_farm.ask(tracker.address)).device.name == "sim0"


@pytest.mark.parametrize("kind", ["port", "unix socket"])
def test_a_killed_server_does_not_stand_in_the_way(
    real_farm: RealFarm, tmp_path: Path, kind: str
) -> None:
    listen = "127.0.0.1:0" if kind == "port" else f"unix:{tmp_path}/t.sock"
    first = real_farm.tracker(listen=listen)
    device = real_farm.device(first.address)
    device.kill()
    first.kill()
    assert kind == "port" or (tmp_path / "t.sock").is_socket()
    again = real_farm.tracker(listen=first.address)
    assert again.address == first.address
    real_farm.device(again.address)
    assert real_farm.lease(real_farm.ask(again.address)).device.name == "sim0"


def test_a_file_that_is_no_socket_stays(real_farm: RealFarm, tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("data")
    assert "a file of another kind" in refused(real_farm, f"unix:{path}")
    assert path.read_text() == "data"
