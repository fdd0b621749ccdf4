"""Large networks, by the command, from their files to programs that ran on samples."""

from __future__ import annotations

import pytest
from tilefarm.clock import SystemClock

from driver.benchmarks.large import measure
from driver.network.examples.topologies import LARGE_TOPOLOGIES

TRIALS = dict.fromkeys(LARGE_TOPOLOGIES, 40) | {"densenet121": 160}
"""Few, but for the network with the most kinds of layers: there what a search learns is seen."""
SAMPLES = 3
"""More than two devices take in their first runs."""
MOST_NBYTES = 9 << 28
"""An eighth more than the goal, which `tilefarm bench large` holds: how much of what was freed the
C library has given back differs from run to run."""


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE_TOPOLOGIES)
def test_a_large_network_runs_whole(name: str) -> None:
    found = measure(name, TRIALS[name], SAMPLES, SystemClock())
    assert found.differing == 0
    assert found.largest_nbytes < MOST_NBYTES
    assert set(found.by_step) >= {"import", "search", "evaluate"}
