"""A space counts the copies of a schedule as lowering makes them."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from kit.kernels.nests import conv2d, dense, matmul, with_epilogue
from tilefarm.target import TARGETS
from tilefarm.workload import Workload

from compile_worker.lowering import lower
from compile_worker.machines.vta.features import features_of
from compile_worker.schedule import replay
from compile_worker.space import generate
from compile_worker.te import nest_of
from tuner.sampler import Sampler

BOARD: Final = TARGETS["sim-pynq-z1"]
"""A design that takes time for every row of a copy, so that its spaces count these."""

NO_PAD: Final = (0, 0, 0, 0)
PLAIN: Final[dict[str, Workload]] = {
    "3x3": conv2d(6, 4, 9, 15),
    "3x3 without pads": conv2d(3, 4, 10, 12, pad=NO_PAD),
    "1x1 of stride 2": conv2d(6, 4, 12, 10, kernel=(1, 1), stride=(2, 2), pad=NO_PAD),
    "1x1": conv2d(6, 4, 6, 9, kernel=(1, 1), pad=NO_PAD),
    "depthwise of stride 2": conv2d(6, 6, 13, 9, groups=6, stride=(2, 2)),
    "within a border": conv2d(2, 4, 6, 8, border=(1, 1, 1, 1)),
    "dense": dense(6, 8),
    "product": matmul(2, 6, 12, 4),
}
PADDED: Final = ("3x3", "depthwise of stride 2", "within a border")
LAYERS: Final = {name: with_epilogue(work, bias=0) for name, work in PLAIN.items()}


@pytest.mark.parametrize("name", LAYERS)
def test_as_lowered(name: str) -> None:
    work = LAYERS[name]
    made = generate(work, BOARD)
    for point in map(dict, Sampler(made.space).sample(8, np.random.default_rng(3))):
        func = lower(replay(made.trace(point), nest_of(work, BOARD), BOARD), BOARD)
        counted = features_of(func, BOARD)
        for memory in ("inp", "wgt"):
            rows = point[f"{memory}_loads"] * point[f"{memory}_rows"]
            assert counted[f"{memory}_dmas"] == point[f"{memory}_copies"], (memory, point)
            if memory == "inp" and name in PADDED:
                assert counted["inp_rows"] <= rows, point  # rows of padding are not copied
            else:
                assert counted[f"{memory}_rows"] == rows, (memory, point)
        assert counted["out_dmas"] >= point["out_copies"], point  # stores may be cut into parts
        assert counted["out_rows"] >= point["out_rows"], point
