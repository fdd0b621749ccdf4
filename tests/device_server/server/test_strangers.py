"""What whoever can connect may do to a server of its own: neither end it nor keep others out."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from kit.farm.crowd import Crowd, ask, knock_and_run
from kit.farm.in_process import eventually
from kit.farm.real_farm import RealFarm, Served
from tilefarm.trust.access import FarmRole

from device_server.tracker.client import TrackerClient

ROTATION_SECONDS: Final = float(os.environ.get("SOAK_SECONDS", "20"))
CLIENTS: Final = int(os.environ.get("SOAK_CLIENTS", "40"))
"""What two cores that others share can shake hands with within a client's second; 200 on idle ones.
"""


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[RealFarm]:
    with RealFarm(tmp_path, tls=True) as farm:
        yield farm


@pytest.fixture
def tracker(farm: RealFarm) -> Served:
    return farm.tracker()


def test_connections_that_end_at_once_stop_no_server(farm: RealFarm, tracker: Served) -> None:
    knock_and_run(tracker.address, 2000)
    assert tracker.alive
    ask(farm.ask(tracker.address))


def test_twenty_clients_that_connect_ten_times_are_served(farm: RealFarm, tracker: Served) -> None:
    def ten_times(_: int) -> None:
        for _ in range(10):
            with TrackerClient(tracker.address, farm.credentials) as client:
                ask(client)

    with ThreadPoolExecutor(20) as clients:
        list(clients.map(ten_times, range(20)))
    assert tracker.alive


def rotate(
    farm: RealFarm, tracker: Served, *, clients: int, seconds: float, pause: float
) -> dict[str, int]:
    """Rotate a tracker's certificates under clients for so long; what those were answered."""
    rotations = 0
    with Crowd(tracker.address, farm.credentials, clients * 4 // 5, clients // 5) as crowd:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and tracker.alive:
            farm.rotate(FarmRole.TRACKER, "tracker")
            rotations += 1
            wait_for_renewals(tracker, rotations)
            time.sleep(pause)
    assert tracker.alive
    assert crowd.errors == []
    assert tracker.end() == 0
    assert tracker.said("level=error") == 0
    return {"rotations": rotations, "tried again": crowd.tried_again, **crowd.answered}


def wait_for_renewals(tracker: Served, times: int) -> None:
    eventually(lambda: tracker.said("event=certificates ") >= times)


def test_a_rotation_loses_no_client(farm: RealFarm, tracker: Served) -> None:
    answered = rotate(farm, tracker, clients=10, seconds=3.0, pause=0.0)
    assert answered["rotations"] >= 2
    assert min(answered["fresh"], answered["staying"]) > answered["rotations"]


@pytest.mark.slow
@pytest.mark.timeout(ROTATION_SECONDS + 300)
def test_rotations_under_many_clients_lose_none(
    farm: RealFarm, tracker: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    answered = rotate(farm, tracker, clients=CLIENTS, seconds=ROTATION_SECONDS, pause=1.0)
    with capsys.disabled():
        print(f"\n{ROTATION_SECONDS:g} s: {answered}")
