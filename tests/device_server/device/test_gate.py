"""Only the holder of the newest lease passes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefarm.errors import LeaseError, SuspectError
from tilefarm.lease import ticket_of
from tilefarm.rpc.device_calls import Claim

from device_server.device.gate import FenceGate

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


def test_a_lease_under_which_the_device_was_wrong_is_good_for_nothing_more() -> None:
    gate = FenceGate("e", SECRET)
    gate.admit(claim(5))
    gate.spoil("the known kernel fails")
    for _ in range(2):
        with pytest.raises(SuspectError, match="the known kernel fails"):
            gate.admit(claim(5))
    with pytest.raises(LeaseError):
        gate.admit(claim(4))
    gate.admit(claim(6))
    gate.admit(claim(6))
