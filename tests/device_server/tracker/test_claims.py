"""Leases that are wanted by others: how devices come to be shared, and that they then stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.counting_ids import CountingIds
from kit.examples import examples
from kit.manual_clock import ManualClock
from tilefarm.digest import Digest
from tilefarm.lease import DeviceInfo, Lease
from tilefarm.rpc.tracker_calls import Acquire, Register

from device_server.tracker import claims
from device_server.tracker.claims import Patience, wanted
from device_server.tracker.leases import LeaseTable
from device_server.tracker.limits import TableLimits
from device_server.tracker.ranked import Ranked
from device_server.tracker.shares import Claimant
from device_server.tracker.wait_queue import Ticket, in_turn

TARGET = Digest.of(b"target")
PATIENCE = Patience(settle_seconds=2.0, turn_seconds=10.0)
RENEWAL_SECONDS = 10.0


@dataclass(slots=True)
class Job:
    """A run that wants so many devices; it gives back what it is told to, and asks again."""

    claimant: Claimant
    wants: int
    priority: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    lends: bool = True
    leases: list[Lease] = field(default_factory=list)
    waiting: list[Ticket] = field(default_factory=list)

    @property
    def wish(self) -> Acquire:
        return Acquire(
            request_id="",
            target=TARGET,
            labels=self.labels,
            owner="tune",
            job=self.claimant.job,
            priority=self.priority,
        )


class SharedFarm:
    """A table, jobs around it, and time that passes from renewal to renewal."""

    def __init__(self, devices: int, labelled: int = 0) -> None:
        self.clock = ManualClock()
        limits = TableLimits(device_ttl_seconds=1e9, lease_ttl_seconds=1e9)
        self.table = LeaseTable(self.clock, CountingIds(), limits=limits)
        self.jobs: list[Job] = []
        self.number = 0
        self.had: Counter[Claimant] = Counter()
        for n in range(devices):
            labels = (("fast", "yes"),) if n < labelled else ()
            info = DeviceInfo(
                name=f"sim{n}",
                address="a:1",
                target=TARGET,
                runtime="r",
                sandbox="s",
                epoch="e",
                labels=labels,
            )
            self.table.register(Register(device=info))

    def join(self, job: Job) -> Job:
        """A job begins: it stands in line for all that it wants."""
        self.jobs.append(job)
        self.ask(job)
        self.serve()
        return job

    def leave(self, job: Job) -> None:
        """A job ends."""
        self.jobs.remove(job)
        for lease in job.leases:
            self.table.release(lease.lease_id, job.claimant.user)
        self.serve()

    def ask(self, job: Job) -> None:
        while len(job.leases) + len(job.waiting) < job.wants:
            self.number += 1
            job.waiting.append(
                Ticket(
                    wish=job.wish,
                    user=job.claimant.user,
                    number=self.number,
                    since=self.clock.seconds(),
                )
            )

    @property
    def line(self) -> list[Ticket]:
        return [place for job in self.jobs for place in job.waiting]

    def serve(self, heir: Ticket | None = None) -> None:
        """As the tracker's line does."""
        moved = True
        while moved:
            moved = False
            places = in_turn(self.line, self.table.shares())
            for place in [heir, *places] if heir in places else places:
                assert place is not None
                lease = self.table.acquire(place.wish, place.user)
                if lease is not None:
                    (job,) = (job for job in self.jobs if place in job.waiting)
                    job.waiting.remove(place)
                    job.leases.append(lease)
                    moved = True
                    break

    def renew(self, seconds: float = RENEWAL_SECONDS) -> int:
        """All jobs renew all their leases, one after the other; how many they give back."""
        self.clock.advance(seconds)
        for job in self.jobs:
            self.had[job.claimant] += len(job.leases)
            for lease in job.leases:
                self.table.renew(lease.lease_id, job.claimant.user, lends=job.lends)
        found = wanted(
            self.line,
            self.table.held(),
            self.table.shares(),
            serves=self.table.would_serve,
            patience=PATIENCE,
        )
        assert len({claim.place.number for claim in found.values()}) == len(found)
        told = [lease for lease, claim in found.items() if claim.at <= self.clock.seconds()]
        for lease_id in told:
            ((job, lease),) = (
                (job, lease)
                for job in self.jobs
                for lease in job.leases
                if lease.lease_id == lease_id
            )
            job.leases.remove(lease)
            self.table.release(lease_id, job.claimant.user)
            self.serve(found[lease_id].place)
            assert found[lease_id].place not in self.line, "it was given for who has it now"
            assert found[lease_id].place.claimant != job.claimant
        for job in self.jobs:
            self.ask(job)
        return len(told)

    def counts(self) -> list[int]:
        """How many leases each job holds."""
        return [len(job.leases) for job in self.jobs]


def job(name: str, wants: int = 8, *, user: str = "", priority: int = 0, **more: Any) -> Job:
    return replace(Job(Claimant(user, name), wants, priority), **more)


def shared(farm: SharedFarm, *jobs: Job) -> list[Job]:
    return [farm.join(one) for one in jobs]


def test_a_second_job_gets_half_at_the_next_renewal_and_then_nothing_moves() -> None:
    farm = SharedFarm(8)
    shared(farm, job("one"), job("two"))
    assert farm.counts() == [8, 0]
    assert farm.renew() == 4
    assert farm.counts() == [4, 4]
    assert [farm.renew() for _ in range(20)] == [0] * 20


def test_a_device_stays_for_a_moment_with_who_has_just_got_it() -> None:
    farm = SharedFarm(4)
    shared(farm, job("one"), job("two"))
    assert farm.renew(1.0) == 0
    assert farm.renew(1.0) == 2


def test_one_device_goes_round_among_those_who_want_it() -> None:
    farm = SharedFarm(1)
    jobs = shared(farm, job("one", 2), job("two", 2), job("three", 1))
    holders = []
    for _ in range(9):
        holders += [one.claimant.job for one in jobs if one.leases]
        assert farm.renew() == 1
    assert holders == ["one", "two", "three"] * 3


def test_what_cannot_be_divided_goes_round_a_turn_each() -> None:
    farm = SharedFarm(3)
    shared(farm, job("one", 3), job("two", 3))
    farm.renew()
    farm.renew()
    assert farm.counts() == [1, 2]
    assert farm.renew(PATIENCE.turn_seconds - 1) == 0
    assert farm.renew(1.0) == 1
    assert farm.counts() == [2, 1]


def test_who_wants_less_than_the_share_gets_that_and_the_others_the_rest() -> None:
    farm = SharedFarm(8)
    shared(farm, job("big", 8), job("small", 1), job("other", 8))
    farm.renew()
    farm.renew()
    assert farm.counts() == [4, 1, 3] or farm.counts() == [3, 1, 4]


def test_shares_are_those_of_users_and_then_of_their_jobs() -> None:
    farm = SharedFarm(8)
    shared(farm, job("one", user="ann"), job("two", user="ann"), job("only", user="bob"))
    for _ in range(3):
        farm.renew()
    assert farm.counts() == [2, 2, 4]


def test_higher_priorities_get_all_that_they_want() -> None:
    farm = SharedFarm(4)
    shared(farm, job("low", 4), job("high", 3, priority=1))
    assert farm.renew() == 3
    assert farm.counts() == [1, 3]
    assert farm.renew(1000.0) == 0
    farm.leave(farm.jobs[1])
    assert farm.counts() == [4]


def test_who_gives_up_a_device_takes_none_at_the_same_look() -> None:
    farm = SharedFarm(2)
    shared(farm, job("one", 1), job("two", 1))
    shared(farm, job("one", 1, priority=1), job("two", 1, priority=1))
    assert farm.renew() == 1, "not two that swap"
    assert farm.counts() == [1, 0, 1, 0]
    assert farm.renew() == 1
    assert farm.counts() == [0, 0, 1, 1]


def test_who_does_not_lend_keeps_and_others_give() -> None:
    farm = SharedFarm(6)
    shared(farm, job("old", 3, lends=False), job("new", 3), job("later", 2))
    farm.renew()
    assert farm.counts() == [3, 2, 1]


def test_only_devices_that_would_do_are_wanted() -> None:
    fast = (("fast", "yes"),)
    farm = SharedFarm(4, labelled=1)
    shared(farm, job("one", 4), job("fast", 4, labels=fast))
    assert farm.renew() == 1
    assert farm.jobs[1].leases[0].device.labels == fast
    farm.table.drain("sim0", "for repair")
    assert farm.renew(1000.0) == 0, "a drained device would be of no use to the other"


JOBS = st.lists(
    st.builds(
        job,
        st.sampled_from("abcdef"),
        st.integers(1, 6),
        user=st.sampled_from(["", "ann", "bob"]),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda one: one.claimant,
)


def fair(jobs: Sequence[Job], devices: int) -> None:
    """Nobody waits while another user, or another job of theirs, has two devices more."""
    users = Counter({one.claimant.user: 0 for one in jobs})
    for one in jobs:
        users[one.claimant.user] += len(one.leases)
    held = sum(users.values())
    assert held == min(devices, sum(one.wants for one in jobs))
    for one in jobs:
        if not one.waiting:
            continue
        assert max(users.values()) <= users[one.claimant.user] + 1
        siblings = [len(j.leases) for j in jobs if j.claimant.user == one.claimant.user]
        assert max(siblings) <= len(one.leases) + 1


def test_a_look_costs_little_where_a_thousand_devices_are_held_and_the_line_is_full() -> None:
    """Counted in looks at ranks, not in seconds: about as many as there are leases and places."""
    farm = SharedFarm(1000)
    for n in range(1000):
        farm.join(job(f"holder{n}", 1))
    for n in range(200):
        farm.jobs.append(job(f"waiting{n}", 1))
        farm.ask(farm.jobs[-1])
    looks = Counter[str]()

    class Counted(Ranked[Any]):
        def _next(self) -> Any:
            looks["looks"] += 1
            return super()._next()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "Ranked", Counted)
        assert farm.renew() == 200
    assert looks["looks"] < 10_000


def test_what_is_ranked_anew_finds_its_place() -> None:
    ranks: dict[str, float | None] = {"a": 1.0, "b": 2.0, "c": 3.0}

    def rank(name: str) -> tuple[float, ...] | None:
        at = ranks[name]
        return None if at is None else (at,)

    ranked = Ranked("abc", rank)
    assert ranked.first() == "a"
    ranks["a"] = 2.5
    assert ranked.first() == "b"
    assert ranked.find(lambda name: True if name == "b" else name) == "a"
    assert ranked.find(lambda name: name != "a") is None
    ranks["b"] = None
    assert ranked.find(lambda name: True if name == "a" else name) == "c"
    assert ranked.first() == "a", "what was passed over is there again"


@settings(max_examples=examples(60), deadline=None)
@given(jobs=JOBS, devices=st.integers(1, 8), leaving=st.integers(0, 7))
def test_any_jobs_come_to_fair_shares_and_nobody_starves(
    jobs: list[Job], devices: int, leaving: int
) -> None:
    farm = SharedFarm(devices)
    shared(farm, *(replace(one, leases=[], waiting=[]) for one in jobs))
    for _ in range(3):
        farm.renew()
    fair(farm.jobs, devices)
    if len(farm.jobs) > 1 and leaving < len(farm.jobs):
        farm.leave(farm.jobs[leaving])
        for _ in range(3):
            farm.renew()
        fair(farm.jobs, devices)
    farm.had.clear()
    for _ in range(4 * len(farm.jobs)):
        farm.renew()
        fair(farm.jobs, devices)
    assert all(farm.had[one.claimant] for one in farm.jobs), "everybody had one at some time"


@pytest.mark.parametrize("devices", [1, 2, 3, 5])
def test_over_time_equals_have_equal_shares(devices: int) -> None:
    farm = SharedFarm(devices)
    shared(farm, *(job(name, devices) for name in "abc"))
    for _ in range(300):
        farm.renew()
    shares = [farm.had[one.claimant] / sum(farm.had.values()) for one in farm.jobs]
    assert all(abs(share - 1 / 3) < 0.03 for share in shares), shares
