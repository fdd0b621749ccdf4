"""Only the holder of the newest lease passes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefarm.errors import LeaseError, SuspectError
from tilefarm.lease import ticket_of
from tilefarm.rpc.device_calls import Claim

from device_server.device.fencing import FenceGate
from device_server.tenancy import OWN

SECRET = b"of the device"


def claim(
    fence: int,
    lease_id: str | None = None,
    epoch: str = "e",
    *,
    secret: bytes = SECRET,
    user: str = "",
) -> Claim:
    name = f"lease-{fence}" if lease_id is None else lease_id
    ticket = ticket_of(secret, lease_id=name, fence=fence, epoch=epoch, user=user)
    return Claim(lease_id=name, fence=fence, epoch=epoch, ticket=ticket)


@given(st.lists(st.integers(0, 20)))
def test_only_the_highest_fence_so_far_passes(fences: list[int]) -> None:
    gate = FenceGate("e", SECRET)
    highest = 0
    for fence in fences:
        if fence >= max(highest, 1):
            gate.admit(claim(fence))
            highest = fence
        else:
            with pytest.raises(LeaseError):
                gate.admit(claim(fence))
        assert gate.fence == highest


@pytest.mark.parametrize(
    "stranger",
    [
        claim(5, "another"),
        claim(5, ""),
        claim(9, ""),
        claim(9, epoch="earlier"),
        claim(9, secret=b"of another"),
        claim(9, user="bob"),
        replace(claim(5), fence=9),
    ],
)
def test_a_stranger_is_refused_and_changes_nothing(stranger: Claim) -> None:
    gate = FenceGate("e", SECRET)
    gate.admit(claim(5))
    with pytest.raises(LeaseError, match="lease anew"):
        gate.admit(stranger)
    gate.admit(claim(5))


def test_another_user_s_claim_is_refused_also_right_after_its_owner_s() -> None:
    gate = FenceGate("e", SECRET)
    held = claim(5, user="ann")
    for _ in range(2):
        gate.admit(held, "ann")
        with pytest.raises(LeaseError, match="not given"):
            gate.admit(held, "bob")


def test_a_lease_under_which_the_device_was_wrong_is_good_for_nothing_more() -> None:
    gate = FenceGate("e", SECRET)
    gate.admit(claim(5))
    gate.spoil(SuspectError("the known kernel fails"))
    for _ in range(2):
        with pytest.raises(SuspectError, match="the known kernel fails"):
            gate.admit(claim(5))
    with pytest.raises(LeaseError):
        gate.admit(claim(4))
    gate.admit(claim(6))
    gate.admit(claim(6))


def test_a_newer_lease_ends_the_one_before() -> None:
    gate = FenceGate("e", SECRET)
    older = gate.admit(claim(5))
    assert gate.admit(claim(5)) is older
    newer = gate.admit(claim(6, user="bob"), "bob")
    assert older.over == "a newer lease has begun"
    assert (newer.lease, newer.fence, newer.user, newer.over) == ("lease-6", 6, "bob", "")


def test_a_lease_that_the_tracker_has_ended_is_good_for_nothing_more() -> None:
    gate = FenceGate("e", SECRET)
    older = gate.admit(claim(5))
    gate.end(4)
    assert gate.admit(claim(5)) is older
    gate.end(7)
    assert "given back or has expired" in older.over
    for fence in (5, 6, 7):
        with pytest.raises(LeaseError, match="given back or has expired"):
            gate.admit(claim(fence))
    gate.end(3)
    assert not gate.admit(claim(8)).over


def test_nobody_ends_the_device_s_own_runs() -> None:
    gate = FenceGate("e", SECRET)
    gate.end(0)
    gate.end(9)
    assert not OWN.over
