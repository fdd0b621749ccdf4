"""Who of those that wait is served next."""

from __future__ import annotations

from tilefarm.digest import Digest
from tilefarm.rpc.tracker_calls import Acquire

from device_server.tracker.shares import Claimant, Shares
from device_server.tracker.wait_queue import Ticket, in_turn

TARGET = Digest.of(b"target")


def place(number: int, user: str, priority: int = 0, owner: str = "") -> Ticket:
    asked = Acquire(request_id="", target=TARGET, owner=owner, priority=priority)
    return Ticket(wish=asked, user=user, number=number, since=0.0)


def shares(*held: tuple[str, str]) -> Shares:
    """Those of jobs that hold leases, each once for every time that it is named."""
    found = Shares()
    for user, job in held:
        found.add(Claimant(user, job))
    return found


def test_the_line_is_by_priority_then_by_share_then_by_arrival() -> None:
    line = [place(1, "ann"), place(2, "bob"), place(3, "ann"), place(4, "eve", priority=1)]
    served = in_turn(line, shares(("ann", ""), ("ann", ""), ("bob", "")))
    assert [p.number for p in served] == [4, 2, 1, 3]
    assert [p.number for p in in_turn(line, Shares())] == [4, 1, 2, 3]


def test_on_a_farm_with_one_secret_shares_are_those_of_owners() -> None:
    line = [place(1, "", owner="run-a"), place(2, "", owner="run-b")]
    assert [p.number for p in in_turn(line, shares(("", "run-a")))] == [2, 1]


def test_users_come_before_their_jobs() -> None:
    line = [place(1, "ann", owner="small"), place(2, "bob", owner="big")]
    held = shares(("ann", "large"), ("ann", "large"), ("bob", "big"))
    assert [p.number for p in in_turn(line, held)] == [2, 1]
    line.append(place(3, "ann", owner="large"))
    assert [p.number for p in in_turn(line, held)] == [2, 1, 3]


def test_among_equals_who_had_a_lease_longest_ago_comes_first() -> None:
    line = [place(1, "ann"), place(2, "bob"), place(3, "eve")]
    held = shares(("eve", ""), ("ann", ""))
    for user in ("eve", "ann"):
        held.remove(Claimant(user, ""))
    assert [p.number for p in in_turn(line, held)] == [2, 3, 1]
