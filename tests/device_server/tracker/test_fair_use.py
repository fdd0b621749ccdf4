"""How much one user may ask of a tracker, and what a client does that is told to wait."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kit.farm.in_process import CREDENTIALS, Farm, eventually
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import BusyError
from tilefarm.rpc.security import Security
from tilefarm.trust.access import FarmRole
from tilefarm.trust.tls import Credentials
from tilefarm.trust.tokens import TokenEntry, TokenTable, table_text

from device_server.tracker.client import TrackerClient
from device_server.tracker.limits import TableLimits
from driver.atomic_write import write_atomically


class GivingBack(SystemClock):
    """A clock whose owner, told to sleep, gives a lease back; it notes for how long."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.give_back: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.give_back()


def test_calls_of_one_user_come_so_often_and_those_of_others_as_before(
    farm: Farm, tmp_path: Path
) -> None:
    rows = tuple(
        TokenEntry(hash=Digest.of(user.encode()), user=user, role=FarmRole.READ)
        for user in ("ann", "bob")
    )
    table = tmp_path / "tokens.json"
    write_atomically(table, table_text(rows).encode())
    farm.security = Security(tokens=TokenTable(table, SystemClock()))
    tracker = farm.tracker(calls_per_user=0.01)
    with TrackerClient(tracker.address, Credentials(token="ann")) as ann:
        ann.overview()
        with pytest.raises(BusyError, match=r"ann makes more than 0\.01 calls") as refused:
            ann.overview()
    assert 10.0 < refused.value.retry_seconds <= 60.0, "within reason, whatever is said"
    with TrackerClient(tracker.address, Credentials(token="bob")) as bob:
        bob.overview()


def test_a_client_comes_again_when_it_was_told_and_not_after_its_time(farm: Farm) -> None:
    tracker = farm.tracker(limits=TableLimits(leases_per_user=1))
    farm.device("a", tracker=tracker)
    farm.device("b", tracker=tracker)
    clock = GivingBack()
    with TrackerClient(tracker.address, CREDENTIALS, clock=clock) as client:
        first = client.acquire(farm.target.digest, wait_seconds=60.0, owner="x")
        assert first is not None
        with pytest.raises(BusyError, match="x holds 1 lease already"):
            client.acquire(farm.target.digest, wait_seconds=0.5, owner="x")
        assert not clock.slept, "the second that it was told is beyond its time"
        clock.give_back = lambda: client.release(first)
        assert client.acquire(farm.target.digest, wait_seconds=60.0, owner="x") is not None
    assert clock.slept == [1.0]


def test_who_lends_is_asked_for_a_device_that_is_taken_out_of_service(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device("sim0", tracker=tracker)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        held = client.acquire(farm.target.digest, wait_seconds=60.0, owner="x")
        assert held is not None
        client.drain("sim0", "new power supply")
        assert client.renew(held, lends=True) == 0.0
        assert client.renew(held) is None, "who does not lend keeps it"
        client.readmit("sim0")
        assert client.renew(held, lends=True) is None


def test_who_lends_hears_that_a_device_is_wanted_and_for_whom_it_is_given_back(farm: Farm) -> None:
    limits = TableLimits(settle_seconds=0.2, turn_seconds=0.2)
    tracker = farm.tracker(limits=limits)
    farm.device("a", tracker=tracker)
    with TrackerClient(tracker.address, CREDENTIALS) as client, ThreadPoolExecutor(1) as later:
        held = client.acquire(farm.target.digest, wait_seconds=60.0, owner="x", job="one")
        assert held is not None
        assert client.renew(held, lends=True) is None, "nobody waits"
        other = later.submit(
            lambda: client.acquire(farm.target.digest, wait_seconds=60.0, owner="x", job="two")
        )
        eventually(lambda: client.renew(held, lends=True) == 0.0)
        assert client.renew(held) is None, "a client that does not lend is asked for nothing"
        eventually(lambda: client.renew(held, lends=True) == 0.0)
        client.release(held)
        lease = other.result(60)
    assert lease is not None
    assert lease.fence > held.fence
