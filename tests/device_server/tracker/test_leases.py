"""The lease table, in sequences that nobody would think of and in some that one would."""

from __future__ import annotations

import math
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from kit.counting_ids import CountingIds
from kit.examples import examples
from kit.manual_clock import ManualClock
from tilefarm.digest import Digest
from tilefarm.errors import ForbiddenError, LeaseError, NoDeviceError, SettingsError
from tilefarm.lease import DeviceInfo, Lease
from tilefarm.rpc.tracker_calls import Acquire, Heartbeat, RefusedRun, RefusedRuns, Register

from device_server.tracker.leases import LeaseTable
from device_server.tracker.limits import TableLimits

TARGET = Digest.of(b"target")
OTHER_TARGET = Digest.of(b"other")
LIMITS = TableLimits(device_ttl_seconds=10.0, lease_ttl_seconds=30.0)


def info(name: str = "sim0", epoch: str = "e1", target: Digest = TARGET) -> DeviceInfo:
    return DeviceInfo(
        name=name, address="a:1", target=target, runtime="r", sandbox="s", epoch=epoch
    )


def registration(
    name: str = "sim0",
    epoch: str = "e1",
    target: Digest = TARGET,
    *,
    fence: int = 0,
    secret: bytes = b"",
) -> Register:
    return Register(device=info(name, epoch, target), fence=fence, secret=secret)


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
    table.register(registration())
    granted(table)
    assert table.acquire(wish()) is None


def test_a_released_device_is_leased_again_with_a_higher_fence(table: LeaseTable) -> None:
    table.register(registration())
    first = granted(table)
    table.release(first.lease_id)
    assert granted(table).fence > first.fence


def test_releasing_twice_takes_nothing_from_the_next_holder(table: LeaseTable) -> None:
    table.register(registration())
    first = granted(table)
    table.release(first.lease_id)
    second = granted(table)
    table.release(first.lease_id)
    assert table.acquire(wish()) is None
    assert table.renew(second.lease_id) == LIMITS.lease_ttl_seconds


def test_a_silent_holder_loses_its_lease(table: LeaseTable, clock: ManualClock) -> None:
    table.register(registration())
    lease = granted(table)
    for _ in range(6):
        clock.advance(5.0)
        table.heartbeat(Heartbeat(name="sim0", epoch="e1"))
    with pytest.raises(LeaseError, match="lease anew"):
        table.renew(lease.lease_id)
    assert table.acquire(wish()) is not None


def test_a_renewed_lease_lives_from_its_renewal(table: LeaseTable, clock: ManualClock) -> None:
    table.register(registration())
    lease = granted(table)
    for _ in range(20):
        clock.advance(9.0)
        table.heartbeat(Heartbeat(name="sim0", epoch="e1"))
        table.renew(lease.lease_id)
    assert table.acquire(wish()) is None


def test_a_silent_device_disappears_with_its_lease(table: LeaseTable, clock: ManualClock) -> None:
    table.register(registration())
    lease = granted(table)
    clock.advance(10.0)
    assert table.expire() == (("device", "sim0"),)
    assert table.states() == ()
    assert not table.heartbeat(Heartbeat(name="sim0", epoch="e1")).known
    with pytest.raises(LeaseError):
        table.renew(lease.lease_id)


def test_a_new_life_of_a_device_voids_its_lease(table: LeaseTable) -> None:
    table.register(registration())
    lease = granted(table)
    table.register(registration(epoch="e2"))
    with pytest.raises(LeaseError):
        table.renew(lease.lease_id)
    assert granted(table).device.epoch == "e2"


def test_registering_again_in_the_same_life_keeps_the_lease(table: LeaseTable) -> None:
    table.register(registration())
    lease = granted(table)
    table.register(Register(device=replace(info(), address="a:2")))
    table.renew(lease.lease_id)
    assert table.states()[0].device.address == "a:2"


def test_an_earlier_life_cannot_take_the_name_back(table: LeaseTable) -> None:
    table.register(registration(epoch="e1"))
    table.register(registration(epoch="e2"))
    with pytest.raises(SettingsError, match="taken the name"):
        table.register(registration(epoch="e1"))
    assert not table.heartbeat(Heartbeat(name="sim0", epoch="e1")).known
    table.deregister("sim0", "e1")
    assert table.heartbeat(Heartbeat(name="sim0", epoch="e2")).known


def test_a_deregistered_device_is_gone_at_once(table: LeaseTable) -> None:
    table.register(registration())
    table.deregister("sim0", "e1")
    assert table.acquire(wish()) is None


def test_fences_start_above_what_devices_have_seen(table: LeaseTable) -> None:
    table.register(registration(fence=41))
    assert granted(table).fence == 42


def test_the_same_request_gets_the_same_lease(table: LeaseTable) -> None:
    table.register(registration("a"))
    table.register(registration("b"))
    assert granted(table, "r1") == granted(table, "r1")
    assert granted(table, "r2") != granted(table, "r1")


def test_the_device_that_rested_longest_is_leased_first(table: LeaseTable) -> None:
    table.register(registration("a"))
    table.register(registration("b"))
    first = granted(table)
    table.release(first.lease_id)
    assert granted(table).device.name != first.device.name


def test_another_target_does_not_fit(table: LeaseTable) -> None:
    table.register(registration(target=OTHER_TARGET))
    assert table.acquire(wish()) is None


WELL = Heartbeat(name="sim0", epoch="e1")
RESTING = Heartbeat(name="sim0", epoch="e1", resting="it drifts")


@pytest.mark.parametrize(("lost", "why"), [(True, ""), (True, "hangs"), (False, "it drifts")])
def test_a_device_that_was_lost_or_rests_waits_for_word_that_was_not_under_way(
    table: LeaseTable, lost: bool, why: str
) -> None:
    table.register(registration())
    table.release(granted(table).lease_id, device_lost=lost, why=why)
    assert table.acquire(wish()) is None
    table.heartbeat(WELL)  # It may have said so before it was given back.
    assert table.acquire(wish()) is None
    table.heartbeat(WELL)
    assert table.freed()
    assert table.acquire(wish()) is not None


def test_a_device_that_rests_is_lost_to_nobody(table: LeaseTable) -> None:
    """It drifts as often as its machine gets hot: whoever has it then gives it back."""
    table.register(registration())
    for user in ("ann", "bob", "eve", "dan") * 2:
        lease = table.acquire(wish(), user)
        assert lease is not None
        table.release(lease.lease_id, user, why="it drifts")
        assert table.states()[0].resting == "it drifts"
        for beat in (WELL, RESTING, RESTING):  # The first one was under way.
            table.heartbeat(beat)
            assert table.states()[0].resting == "it drifts"
            assert table.acquire(wish(), "eve") is None
        table.heartbeat(WELL)
    assert granted(table)
    assert table.states()[0].quarantine == ""


def test_a_rest_makes_no_loss_good(table: LeaseTable) -> None:
    table.register(registration())
    lose(table, "ann", "hangs")
    lose(table, "bob", "hangs")
    beat_twice(table)
    table.release(granted(table).lease_id, why="it drifts")
    lose(table, "eve", "hangs")
    assert table.states()[0].quarantine == "lost 3 times in a row; eve: hangs"


def test_a_name_is_taken_over_by_the_same_device_only(
    table: LeaseTable, clock: ManualClock
) -> None:
    table.register(registration(secret=b"mine"))
    lease = granted(table)
    with pytest.raises(SettingsError, match="taken by a living device at a:1"):
        table.register(registration(epoch="e2", secret=b"another's"))
    table.renew(lease.lease_id)
    table.register(registration(epoch="e2", secret=b"mine"))
    clock.advance(10.0)
    table.register(registration(epoch="e3", secret=b"another's"))


def test_a_lease_belongs_to_its_user(table: LeaseTable) -> None:
    table.register(registration())
    lease = table.acquire(wish(), "ann")
    assert lease is not None
    for forbidden in (table.renew, table.release):
        with pytest.raises(ForbiddenError, match="is that of ann"):
            forbidden(lease.lease_id, "bob")
    assert table.states()[0].user == "ann"
    table.release(lease.lease_id, "ann")
    assert table.acquire(wish(), "bob") is not None


def test_a_drained_device_keeps_its_lease_and_gets_no_other(table: LeaseTable) -> None:
    table.register(registration())
    lease = granted(table)
    table.drain("sim0", "for repair")
    table.renew(lease.lease_id)
    table.release(lease.lease_id)
    assert table.acquire(wish()) is None
    assert table.states()[0].draining == "for repair"
    table.register(registration(epoch="e2"))
    assert table.acquire(wish()) is None
    table.readmit("sim0")
    assert table.acquire(wish()) is not None


def test_a_device_that_one_after_the_other_loses_is_quarantined(table: LeaseTable) -> None:
    table.register(registration())

    lose(table, "ann", "hangs")
    lose(table, "bob", "hangs")
    beat_twice(table)
    table.release(granted(table).lease_id)
    for user in ("ann", "bob", "eve"):
        lose(table, user, "no answer to Run")
    beat_twice(table)
    assert table.acquire(wish()) is None
    assert table.states()[0].quarantine == "lost 3 times in a row; eve: no answer to Run"
    table.readmit("sim0")
    assert granted(table)


def beat_twice(table: LeaseTable) -> None:
    for _ in range(2):
        table.heartbeat(WELL)


def lose(table: LeaseTable, user: str, why: str) -> None:
    beat_twice(table)
    lease = table.acquire(wish(owner="tune"), user)
    assert lease is not None
    table.release(lease.lease_id, user, device_lost=True, why=why)


def test_one_user_alone_puts_no_device_into_quarantine(table: LeaseTable) -> None:
    table.register(registration())
    for _ in range(9):
        lose(table, "ann", "hangs")
    lose(table, "bob", "hangs")
    beat_twice(table)
    assert table.states()[0].quarantine == ""
    assert granted(table)


def test_where_nobody_is_told_apart_every_loss_counts(table: LeaseTable) -> None:
    table.register(registration())
    for _ in range(3):
        lose(table, "", "hangs")
    assert table.states()[0].quarantine == "lost 3 times in a row; tune: hangs"


@pytest.mark.parametrize("told", [True, False], ids=["a client says so first", "nobody says so"])
def test_what_the_tracker_sees_itself_counts(
    table: LeaseTable, clock: ManualClock, told: bool
) -> None:
    for life in range(3):
        table.register(registration(epoch=f"e{life}"))
        lease = table.acquire(wish(), "ann")
        assert lease is not None
        if told:
            table.release(lease.lease_id, "ann", device_lost=True, why="gone")
        clock.advance(LIMITS.device_ttl_seconds)
        assert table.expire()[0] == ("device", "sim0")
    table.register(registration(epoch="e9"))
    assert table.acquire(wish()) is None
    who = "ann: gone" if told else "the tracker: no heartbeat"
    assert table.states()[0].quarantine == f"lost 3 times in a row; {who}"


def test_a_device_that_falls_silent_while_it_is_free_is_none_that_is_lost(
    table: LeaseTable, clock: ManualClock
) -> None:
    for life in range(5):
        table.register(registration(epoch=f"e{life}"))
        clock.advance(LIMITS.device_ttl_seconds)
    table.register(registration(epoch="e9"))
    assert granted(table)


def refusing(edition: int, *entries: str, seconds: float = 10.0) -> Heartbeat:
    runs = tuple(
        RefusedRun(
            artifact=TARGET,
            entry=entry,
            crashes=2,
            status="run_crash",
            why="SIGSEGV",
            refused_seconds=seconds,
        )
        for entry in entries
    )
    told = RefusedRuns(edition=edition, runs=runs)
    return Heartbeat(name="sim0", epoch="e1", refused=told)


def test_what_a_device_refuses_is_known_until_it_is_readmitted(
    table: LeaseTable, clock: ManualClock
) -> None:
    table.register(registration())
    beat = Heartbeat(name="sim0", epoch="e1")
    assert table.heartbeat(beat).refused_edition == 0
    assert table.heartbeat(refusing(3, "a", "b")).refused_edition == 3
    clock.advance(5)
    assert table.heartbeat(beat).refused_edition == 3
    (state,) = table.states()
    assert state.refused == 2
    assert [(run.entry, run.refused_seconds) for run in table.refused_runs("sim0")] == [
        ("a", 15.0),
        ("b", 15.0),
    ]
    table.readmit("sim0")
    assert table.states()[0].refused == 0, "before the device has heard of it"
    assert table.refused_runs("sim0") == ()
    reply = table.heartbeat(beat)
    assert (reply.readmissions, reply.refused_edition) == (1, 3)
    assert table.heartbeat(refusing(4)).refused_edition == 4
    with pytest.raises(NoDeviceError, match="no device sim9"):
        table.refused_runs("sim9")


def test_another_life_of_a_device_tells_anew_what_it_refuses(table: LeaseTable) -> None:
    table.register(registration())
    table.heartbeat(refusing(3, "a"))
    table.register(registration(epoch="e2"))
    reply = table.heartbeat(Heartbeat(name="sim0", epoch="e2"))
    assert (reply.refused_edition, table.states()[0].refused) == (0, 0)


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1.0])
def test_what_a_device_says_of_itself_is_kept_within_bounds(
    table: LeaseTable, seconds: float
) -> None:
    table.register(registration())
    table.heartbeat(refusing(1, *("x" * 1000 for _ in range(1000)), seconds=seconds))
    runs = table.refused_runs("sim0")
    assert len(runs) == 256
    assert {(len(run.entry), run.refused_seconds) for run in runs} == {(300, 0.0)}


def test_nobody_drains_what_is_not_there(table: LeaseTable) -> None:
    with pytest.raises(NoDeviceError, match="no device sim9") as error:
        table.drain("sim9", "x")
    assert "tilefarm devices" in error.value.hint
    with pytest.raises(NoDeviceError, match="no device sim9"):
        table.readmit("sim9")


def test_another_table_goes_on_from_a_state(table: LeaseTable, clock: ManualClock) -> None:
    table.register(registration("a", secret=b"a's"))
    table.register(registration("b"))
    table.drain("b", "x")
    lease = table.acquire(wish("r"), "ann")
    assert lease is not None
    clock.advance(9.0)
    other = LeaseTable(clock, CountingIds(), limits=LIMITS)
    other.restore(table.state)
    assert other.state == table.state
    assert other.acquire(wish("r"), "ann") == lease
    clock.advance(9.0)
    assert other.heartbeat(Heartbeat(name="a", epoch="e1")).known
    assert other.renew(lease.lease_id, "ann") == LIMITS.lease_ttl_seconds
    with pytest.raises(SettingsError, match="taken"):
        other.register(registration("a", "e2", secret=b"another's"))


def test_what_runs_out_under_another_call_is_told_all_the_same(
    table: LeaseTable, clock: ManualClock
) -> None:
    table.register(registration("a"))
    clock.advance(10.0)
    table.register(registration("b"))
    assert table.expire() == (("device", "a"),)
    assert table.expire() == ()


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
        self.drained: set[str] = set()
        self.fence = 0
        self.kept: dict[str, dict[str, object]] = {"devices": {}, "leases": {}, "standings": {}}

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
        self.table.register(registration(name, self.epoch(name)))

    @rule(name=names)
    def heartbeat(self, name: str) -> None:
        self.table.heartbeat(Heartbeat(name=name, epoch=self.epoch(name)))

    @rule(name=names)
    def deregister(self, name: str) -> None:
        self.table.deregister(name, self.epoch(name))

    @rule(target=leases, request=st.sampled_from(["", "r1", "r2"]))
    def acquire(self, request: str) -> str:
        lease = self.table.acquire(wish(request))
        if lease is None:
            return ""
        if lease.lease_id not in self.given:
            assert lease.device.name not in self.drained
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

    @rule(name=names)
    def drain(self, name: str) -> None:
        with suppress(NoDeviceError):
            self.table.drain(name, "by a test")
            self.drained.add(name)

    @rule(name=names)
    def readmit(self, name: str) -> None:
        with suppress(NoDeviceError):
            self.table.readmit(name)
            self.drained.discard(name)

    @rule()
    def restart(self) -> None:
        """The tracker starts again from what it kept: leases get their whole time again."""
        table = LeaseTable(self.clock, self.ids, limits=LIMITS)
        self.table.expire()
        self.changes_add_up_to_the_state()
        table.restore(self.table.state)
        self.table = table
        self.renewed = dict.fromkeys(self.renewed, self.clock.seconds())

    @rule(seconds=st.sampled_from([0.5, 4.0, 9.9, 31.0]))
    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @invariant()
    def changes_add_up_to_the_state(self) -> None:
        changes = self.table.changes()
        for kind, known in self.kept.items():
            for name, what in getattr(changes, kind):
                known.pop(name, None)
                if what is not None:
                    known[name] = what
        state = self.table.state
        assert self.kept["devices"] == {call.device.name: call for call in state.devices}
        assert self.kept["leases"] == {held.lease.lease_id: held for held in state.leases}
        assert self.kept["standings"] == dict(state.standings)

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
TestLeaseTable.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)


def ended(table: LeaseTable, epoch: str = "e1") -> int:
    """Up to which fence no lease of the device lives, as the device is told."""
    fence = table.heartbeat(Heartbeat(name="sim0", epoch=epoch)).ended_fence
    assert fence is not None
    return fence


def test_a_device_hears_which_of_its_leases_have_ended(
    table: LeaseTable, clock: ManualClock
) -> None:
    table.register(registration(fence=7))
    assert ended(table) == 7
    first = granted(table)
    assert ended(table) < first.fence
    table.release(first.lease_id)
    assert ended(table) >= first.fence
    second = granted(table)
    assert first.fence <= ended(table) < second.fence
    clock.advance(9.0)
    table.heartbeat(Heartbeat(name="sim0", epoch="e1"))
    clock.advance(9.0)
    table.heartbeat(Heartbeat(name="sim0", epoch="e1"))
    assert ended(table) < second.fence
    clock.advance(9.0)
    table.heartbeat(Heartbeat(name="sim0", epoch="e1"))
    clock.advance(4.0)
    assert ended(table) >= second.fence, "thirty seconds without a renewal"


def test_a_table_that_goes_on_tells_devices_of_leases_that_ended_before(
    table: LeaseTable, clock: ManualClock
) -> None:
    table.register(registration())
    first = granted(table)
    held = LeaseTable(clock, CountingIds(), limits=LIMITS)
    held.restore(table.state)
    assert ended(held) < first.fence
    table.release(first.lease_id)
    free = LeaseTable(clock, CountingIds(), limits=LIMITS)
    free.restore(table.state)
    assert ended(free) >= first.fence
