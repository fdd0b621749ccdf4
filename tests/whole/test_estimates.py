"""What spaces say of their points before they are measured, against exact cycles.

Layers that no network has, of kinds in which another module is the slowest: loads of a reduction
that is cut into more steps than there are slots, one output block, stores, loads of whole images.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pytest
from kit.built import no_simulator, require
from kit.kernels.nests import conv2d, dense, matmul, scaled_add, window
from tilefarm.space import ESTIMATE
from tilefarm.target import TARGETS

from driver.benchmarks.tuner.measured_space import MeasuredSpace
from tuner.candidate_pool import CandidatePool
from tuner.sampler import Sampler
from tuner.shortlist import Shortlist

NO_PAD: Final = (0, 0, 0, 0)
LAYERS: Final = {
    "3x3": conv2d(3, 5, 12, 20),
    "depthwise of stride 2": conv2d(6, 6, 26, 18, groups=6, stride=(2, 2)),
    "one output block": conv2d(6, 1, 30, 18, kernel=(1, 1), pad=NO_PAD),
    "many output blocks": conv2d(1, 12, 14, 18, kernel=(1, 1), pad=NO_PAD),
    "1x1 of stride 2": conv2d(10, 6, 18, 12, kernel=(1, 1), stride=(2, 2), pad=NO_PAD),
    "dense": dense(24, 18),
    "product": matmul(2, 30, 6, 8),
    "window_max2d": window("window_max2d", 4, (24, 24)),
    "window_sum2d": window("window_sum2d", 6, (12, 12), (2, 2), (2, 2), NO_PAD),
    "scaled_add": scaled_add((1, 6, 18, 18, 1, 16)),
}
FOR_EACH: Final = 6
SIM: Final = TARGETS["sim"]
DEVICES: Final = {
    "sim": SIM,
    "sim-pynq-z1": TARGETS["sim-pynq-z1"],
    "far memory": replace(SIM, timing=replace(SIM.timing, dram_delay_cycles=100)),
}


MISSED: Final = {"sim": 1.15, "sim-pynq-z1": 1.15, "far memory": 1.3}
"""By how much half of the points may be missed; waits for a far memory overlap less regularly."""
ALWAYS: Final = ("depthwise of stride 2", "one output block", "window_max2d")
"""On the simulator's own design in every run, the others in the long suites."""


@pytest.mark.parametrize(
    "device",
    [pytest.param(name, marks=() if name == "sim" else pytest.mark.slow) for name in DEVICES],
)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.slow) for name in LAYERS],
)
def test_the_cheapest_points_and_any_ones(name: str, device: str) -> None:
    require(no_simulator)
    measured = MeasuredSpace(LAYERS[name], DEVICES[device])
    rng = np.random.default_rng(11)
    some = CandidatePool(measured.sampler, rng).sample(64)
    sampler = Sampler(measured.space, limits_on=(ESTIMATE,))
    least = Shortlist(sampler, some, rng).within(0.01)[:FOR_EACH]
    column = measured.sampler.names.index(ESTIMATE)
    missed = []
    for rows in (least, some[:FOR_EACH]):
        cycles = np.asarray(
            [measured.cycles(point) or 0 for point in measured.sampler.points(rows)], dtype=float
        )
        assert cycles.all()
        missed.append(np.abs(np.log2(rows[:, column] / 4 / cycles)))
    for each in missed:
        assert np.median(each) < np.log2(MISSED[device]), missed
    assert missed[0].max() < np.log2(1.35), missed
