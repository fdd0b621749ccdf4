"""The drift check on a board's real times: one that is throttled is found.

What follows when it comes back is in `test_canary.py`, on times that a test scripts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kit.built import needs_simulator
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.measurement import Measurement, RunFailure, RunJob
from tilefarm.target import TARGETS

from device_server.device.canary import Canary, Drift
from device_server.device.self_test import known_kernel_for
from device_server.runner.runner import Runner
from device_server.tenancy import OWN, Tenancy
from device_server.vta.library.native import find_stand_in

pytestmark = needs_simulator

SIM = TARGETS["sim"]
FULL_MHZ, THROTTLED_MHZ = 100, 10
"""So far apart that no neighbour on this host's cores makes the two look alike."""


class Throttled:
    """A board whose clock a test turns down; a kernel runner."""

    def __init__(self, owned: ExitStack) -> None:
        self._at = {
            mhz: owned.enter_context(
                Runner(
                    target=SIM,
                    library=find_stand_in(),
                    environment={"TILEFARM_BOARD_MHZ": str(mhz)},
                )
            )
            for mhz in (FULL_MHZ, THROTTLED_MHZ)
        }
        self.mhz = FULL_MHZ

    @property
    def sandbox(self) -> str:
        return self._at[self.mhz].sandbox

    @property
    def runtime_id(self) -> str:
        return self._at[self.mhz].runtime_id

    def run(
        self, job: RunJob, blob: Callable[[Digest], Path], tenancy: Tenancy = OWN
    ) -> Measurement | RunFailure:
        return self._at[self.mhz].run(job, blob, tenancy)

    def close(self) -> None:
        """Who owns them closes them."""


@pytest.fixture
def board() -> Iterator[Throttled]:
    with ExitStack() as owned:
        yield Throttled(owned)


def test_a_throttled_board_is_found(board: Throttled, tmp_path: Path) -> None:
    canary = Canary(known_kernel_for(SIM), board, tmp_path, clock=SystemClock(), device="board")
    canary.prove()
    board.mhz = THROTTLED_MHZ
    drift = canary.check()
    assert isinstance(drift, Drift)
    assert "more time than before" in drift.why
