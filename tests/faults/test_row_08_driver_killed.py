"""Row 8: a driver that is killed at any moment goes on, and ends where it would have ended."""

from __future__ import annotations

import os
import random
import time
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest
from kit.farm.real_farm import RealFarm
from kit.networks.onnx_models import model, node, saved
from tilefarm.measurement import Trial

from driver.campaign.campaign import WorkLimits
from tuner.trial_store import TrialStore

from .fault_rows import Stopwatch
from .tuning import Tuning, tuning

TRIALS = 40
EVENTS = ("step_began", "search_began", "device_joined", "trial", "trial", "trial")
"""What a driver may have said last; most of its life is trials."""
KILLS = 4
SEED = int(os.environ.get("SOAK_SEED", "0")) or time.time_ns() % 10**6


COMPILING = {"guided": ("--no-ray", "--workers", "1"), "random": ("--workers", "2")}
"""Where it compiles, by proposer: in a process; on Ray once that is up, in a process until then."""


@pytest.fixture(params=["guided", pytest.param("random", marks=pytest.mark.slow)])
def proposer(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def command(tmp_path: Path, proposer: str) -> list[str]:
    """Tune one convolution."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((32, 32, 3, 3)).astype(np.float32)}
    conv = node("Conv", ["x", "w"], "y", pads=[1, 1, 1, 1])
    network = saved(model([conv], weights, x=(1, 32, 8, 8)), tmp_path)
    data = tmp_path / "data.npz"
    np.savez(data, x=rng.standard_normal((2, 32, 8, 8)).astype(np.float32))
    return ["tune", str(network), "--calibrate", str(data), "--proposer", proposer]


def trials_in(out: Path) -> list[Trial]:
    if not (out / "records.sqlite").exists():
        return []
    with TrialStore(
        out / "records.sqlite"
    ) as store:  # for writing: brings in what a kill left behind
        return store.trials()


def runs_of(farm: RealFarm) -> int:
    """Runs of candidates on the device; those of whole networks are of none."""
    log = (farm.folder / "sim0.log").read_text()
    return sum("event=ran" in line and "candidate=" in line for line in log.splitlines())


@pytest.mark.timeout(600)
def test_it_ends_as_it_would_have_and_measures_nothing_twice(
    real_farm: RealFarm,
    tmp_path: Path,
    command: list[str],
    proposer: str,
    stopwatch: Stopwatch,
) -> None:
    def tuned(out: Path) -> AbstractContextManager[Tuning]:
        where = COMPILING[proposer]
        return tuning(real_farm, tracker.address, out, TRIALS, command=command, compiling=where)

    chance = random.Random(SEED)
    tracker = real_farm.tracker()
    real_farm.device(tracker.address)
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    with tuned(undisturbed) as driver:
        assert driver.end() == (0, "")
    runs_before = runs_of(real_farm)

    for _ in range(KILLS):
        known = len(trials_in(killed))
        event = chance.choice(EVENTS if known + 2 < TRIALS else EVENTS[:3])
        with tuned(killed) as driver:
            with stopwatch.running():
                said = driver.wait_for(event)
            assert said.get("number", known + 1) == known + 1, f"seed {SEED}"
            time.sleep(chance.uniform(0.0, 0.2))
            driver.process.kill()
    with tuned(killed) as driver:
        assert driver.end() == (0, ""), f"seed {SEED}"

    def outcomes(out: Path) -> list[tuple[object, ...]]:
        """In the order in which they were asked for."""
        return [(t.workload, t.trace, t.status, t.cycles) for t in trials_in(out)]

    assert outcomes(killed) == outcomes(undisturbed), f"seed {SEED}"
    # What its device had not confirmed when the driver was killed was not kept, and nothing else
    # is run again: it confirms when it has run what it had in hand.
    again = runs_of(real_farm) - runs_before - TRIALS
    assert 0 <= again <= 2 * KILLS * WorkLimits().run_limit, f"seed {SEED}"
