"""The lease table, in sequences that nobody would think of and in some that one would."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from tilefarm.calls import Acquire
from tilefarm.clock import ManualClock
from tilefarm.digest import Digest
from tilefarm.errors import LeaseError, SettingsError
from tilefarm.lease import DeviceInfo, Lease
from tilefarm.names import CountingIds

from device_server.leases import LeaseTable, TableLimits

TARGET = Digest.of(b"target")
OTHER_TARGET = Digest.of(b"other")
LIMITS = TableLimits(device_ttl_seconds=10.0, lease_ttl_seconds=30.0)


def info(name: str = "sim0", epoch: str = "e1", target: Digest = TARGET) -> DeviceInfo:
    return DeviceInfo(
        name=name, address="a:1", target=target, runtime="r", sandbox="s", epoch=epoch
    )


def wish(request: str = "", owner: str = "") -> Acquire:
    return Acquire(request_id=request, target=TARGET, owner=owner)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def table(clock: ManualClock) -> LeaseTable:
    return LeaseTable(clock, CountingIds(), limits=LIMITS)


def granted(table: LeaseTable, request: str = "") -> Lease:
    lease = table.acquire(wish(request))
    assert lease is not None
    return lease


def test_a_device_is_leased_once(table: LeaseTable) -> None:
    table.register(info())
    granted(table)
    assert table.acquire(wish()) is None


def test_a_released_device_is_leased_again_with_a_higher_fence(table: LeaseTable) -> None:
    table.register(info())
    first = granted(table)
    table.release(first.lease_id)
    assert granted(table).fence > first.fence


def test_releasing_twice_takes_nothing_from_the_next_holder(table: LeaseTable) -> None:
    table.register(info())
    first = granted(table)
    table.release(first.lease_id)
    second = granted(table)
    table.release(first.lease_id)
    assert table.acquire(wish()) is None
    assert table.renew(second.lease_id) == LIMITS.lease_ttl_seconds


def test_a_silent_holder_loses_its_lease(table: LeaseTable, clock: ManualClock) -> None:
    table.register(info())
    lease = granted(table)
    for _ in range(6):
        clock.advance(5.0)
        table.heartbeat("sim0", "e1")
    with pytest.raises(LeaseError, match="lease anew"):
        table.renew(lease.lease_id)
    assert table.acquire(wish()) is not None


def test_a_renewed_lease_lives_from_its_renewal(table: LeaseTable, clock: ManualClock) -> None:
    table.register(info())
    lease = granted(table)
    for _ in range(20):
        clock.advance(9.0)
        table.heartbeat("sim0", "e1")
        table.renew(lease.lease_id)
    assert table.acquire(wish()) is None


def test_a_silent_device_disappears_with_its_lease(table: LeaseTable, clock: ManualClock) -> None:
    table.register(info())
    lease = granted(table)
    clock.advance(10.0)
    assert table.expire() == (("device", "sim0"),)
    assert table.states() == ()
    assert not table.heartbeat("sim0", "e1")
    with pytest.raises(LeaseError):
        table.renew(lease.lease_id)


def test_a_new_life_of_a_device_voids_its_lease(table: LeaseTable) -> None:
    table.register(info())
    lease = granted(table)
    table.register(info(epoch="e2"))
    with pytest.raises(LeaseError):
        table.renew(lease.lease_id)
    assert granted(table).device.epoch == "e2"


def test_registering_again_in_the_same_life_keeps_the_lease(table: LeaseTable) -> None:
    table.register(info())
    lease = granted(table)
    table.register(replace(info(), address="a:2"))
    table.renew(lease.lease_id)
    assert table.states()[0].device.address == "a:2"


def test_an_earlier_life_cannot_take_the_name_back(table: LeaseTable) -> None:
    table.register(info(epoch="e1"))
    table.register(info(epoch="e2"))
    with pytest.raises(SettingsError, match="taken the name"):
        table.register(info(epoch="e1"))
    assert not table.heartbeat("sim0", "e1")
    table.deregister("sim0", "e1")
    assert table.heartbeat("sim0", "e2")


def test_a_deregistered_device_is_gone_at_once(table: LeaseTable) -> None:
    table.register(info())
    table.deregister("sim0", "e1")
    assert table.acquire(wish()) is None


def test_fences_start_above_what_devices_have_seen(table: LeaseTable) -> None:
    table.register(info(), fence=41)
    assert granted(table).fence == 42


def test_the_same_request_gets_the_same_lease(table: LeaseTable) -> None:
    table.register(info("a"))
    table.register(info("b"))
    assert granted(table, "r1") == granted(table, "r1")
    assert granted(table, "r2") != granted(table, "r1")


def test_the_device_that_rested_longest_is_leased_first(table: LeaseTable) -> None:
    table.register(info("a"))
    table.register(info("b"))
    first = granted(table)
    table.release(first.lease_id)
    assert granted(table).device.name != first.device.name


def test_another_target_does_not_fit(table: LeaseTable) -> None:
    table.register(info(target=OTHER_TARGET))
    assert table.acquire(wish()) is None


def test_a_lost_device_waits_for_its_heartbeat(table: LeaseTable) -> None:
    table.register(info())
    table.release(granted(table).lease_id, device_lost=True)
    assert table.acquire(wish()) is None
    table.heartbeat("sim0", "e1")
    assert table.acquire(wish()) is not None


class LeaseTableMachine(RuleBasedStateMachine):
    """Devices come and go, clients lease and forget, time passes: no device is ever shared.

    The model knows only what it was told: when each lease was last renewed and in which life of its
    device it was given.
    """

    leases = Bundle("leases")
    names = st.sampled_from(["a", "b", "c"])

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.ids = CountingIds()
        self.table = LeaseTable(self.clock, self.ids, limits=LIMITS)
        self.epochs = dict.fromkeys("abc", 0)
        self.given: dict[str, Lease] = {}
        self.renewed: dict[str, float] = {}
        self.ended: set[str] = set()
        self.fence = 0

    def epoch(self, name: str) -> str:
        return f"{name}{self.epochs[name]}"

    def alive(self, lease: Lease) -> bool:
        try:
            self.table.renew(lease.lease_id)
        except LeaseError:
            return False
        self.renewed[lease.lease_id] = self.clock.seconds()
        return True

    @rule(name=names, restarted=st.booleans())
    def register(self, name: str, restarted: bool) -> None:
        self.epochs[name] += restarted
        self.table.register(info(name, self.epoch(name)))

    @rule(name=names)
    def heartbeat(self, name: str) -> None:
        self.table.heartbeat(name, self.epoch(name))

    @rule(name=names)
    def deregister(self, name: str) -> None:
        self.table.deregister(name, self.epoch(name))

    @rule(target=leases, request=st.sampled_from(["", "r1", "r2"]))
    def acquire(self, request: str) -> str:
        lease = self.table.acquire(wish(request))
        if lease is None:
            return ""
        if lease.lease_id not in self.given:
            assert lease.fence > self.fence
            self.fence = lease.fence
            self.renewed[lease.lease_id] = self.clock.seconds()
        assert lease.lease_id not in self.ended
        self.given[lease.lease_id] = lease
        return lease.lease_id

    @rule(lease_id=leases)
    def renew(self, lease_id: str) -> None:
        lease = self.given.get(lease_id)
        if lease is None:
            return
        late = self.clock.seconds() >= self.renewed[lease_id] + LIMITS.lease_ttl_seconds
        void = lease.device.epoch != self.epoch(lease.device.name)
        if self.alive(lease):
            assert not late
            assert not void
            assert lease_id not in self.ended
        else:
            self.ended.add(lease_id)

    @rule(lease_id=leases, lost=st.booleans())
    def release(self, lease_id: str, lost: bool) -> None:
        self.table.release(lease_id, device_lost=lost)
        self.ended.add(lease_id)

    @rule(seconds=st.sampled_from([0.5, 4.0, 9.9, 31.0]))
    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @invariant()
    def owners_are_live_leases(self) -> None:
        owned = [state.owner for state in self.table.states() if state.owner]
        assert len(owned) == len(set(owned))
        assert not self.ended & set(owned)
        for lease_id in owned:
            assert self.clock.seconds() < self.renewed[lease_id] + LIMITS.lease_ttl_seconds

    @invariant()
    def a_device_has_one_live_lease_and_that_is_its_newest(self) -> None:
        # Asking whether a lease lives renews it, so a copy is asked.
        copy = deepcopy(self.table, {id(self.ids): self.ids})
        newest: dict[str, int] = {}
        for lease in self.given.values():
            name = lease.device.name
            newest[name] = max(newest.get(name, 0), lease.fence)
        for lease_id, lease in self.given.items():
            with suppress(LeaseError):
                copy.renew(lease_id)
                assert lease.fence == newest[lease.device.name]


TestLeaseTable = LeaseTableMachine.TestCase
TestLeaseTable.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
