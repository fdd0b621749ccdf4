"""The drift check on a board's real times: noise stops no board, a throttled one is found."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.measurement import Measurement, RunFailure, RunJob
from tilefarm.target import TARGETS

from device_server.device.canary import Canary, Drift
from device_server.device.self_test import known_kernel_for
from device_server.runner.runner import Runner
from device_server.tenancy import OWN, Tenancy
from device_server.vta.library.native import find_stand_in

SIM = TARGETS["sim"]
FULL_MHZ, THROTTLED_MHZ = 100, 66


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


@contextmanager
def busy_host() -> Iterator[None]:
    """Three processes for every core that there is."""
    command = [sys.executable, "-c", "while True: pass"]
    hogs = [subprocess.Popen(command) for _ in range(3 * len(os.sched_getaffinity(0)))]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def checked(board: Throttled, folder: Path, checks: int, *, stopped: int = 0) -> None:
    canary = Canary(known_kernel_for(SIM), board, folder, clock=SystemClock(), device="board")
    canary.prove()
    found = [canary.check() for _ in range(checks)]
    assert sum(each is not None for each in found) <= stopped, found
    board.mhz = THROTTLED_MHZ
    drift = canary.check()
    assert isinstance(drift, Drift)
    assert "more time than at first" in drift.why
    board.mhz = FULL_MHZ
    assert canary.check() is None


def test_a_throttled_board_is_found_and_may_come_back(board: Throttled, tmp_path: Path) -> None:
    checked(board, tmp_path, 3)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_noise_hardly_ever_stops_a_board(board: Throttled, tmp_path: Path) -> None:
    """A host with three processes for every core was seen to do it once in many hundred checks."""
    with busy_host():
        checked(board, tmp_path, 160, stopped=3)
