from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefarm.calls import Claim
from tilefarm.errors import LeaseError

from device_server.gate import FenceGate


def claim(fence: int, lease_id: str | None = None, epoch: str = "e") -> Claim:
    return Claim(
        lease_id=f"lease-{fence}" if lease_id is None else lease_id, fence=fence, epoch=epoch
    )


@given(st.lists(st.integers(0, 20)))
def test_only_the_highest_fence_so_far_passes(fences: list[int]) -> None:
    gate = FenceGate("e")
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
    "stranger", [claim(5, "another"), claim(5, ""), claim(9, ""), claim(9, epoch="earlier")]
)
def test_a_stranger_is_refused_and_changes_nothing(stranger: Claim) -> None:
    gate = FenceGate("e")
    gate.admit(claim(5))
    with pytest.raises(LeaseError, match="lease anew"):
        gate.admit(stranger)
    gate.admit(claim(5))
