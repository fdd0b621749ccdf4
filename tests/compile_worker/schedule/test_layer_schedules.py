"""Steps behind a layer's schedule: lowering refuses them by name, or keeps the meaning."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Final

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from kit.kernels.nests import SIM, conv2d, inputs_of
from kit.kernels.schedules import Tiling, outputs
from kit.kernels.traces import scheduled

from compile_worker.emit import kernel_text
from compile_worker.errors import Refused
from compile_worker.lowering import lower
from compile_worker.schedule import Schedule, replay
from compile_worker.te import nest_of

LAYER: Final = conv2d(ci=2, co=2, height=4, width=4)


def explore(examples: int, *, derandomize: bool) -> int:
    """Take a few more steps behind a convolution's schedule; how many of these lowering takes."""
    nest, arrays = nest_of(LAYER, SIM), inputs_of(LAYER)
    layer = replay(Tiling(slots=2, acc_slots=2, co=2, h=2).trace(), nest, SIM)
    wanted = outputs(nest, arrays)["out"]
    taken: list[Schedule] = []

    @st.composite
    def schedules(draw: st.DrawFn) -> Schedule:
        return scheduled(draw, Schedule(layer, SIM), draw(st.integers(1, 3)), Counter())

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=derandomize,
        database=None,
        phases=(Phase.generate,),
    )
    @given(schedules())
    def check(schedule: Schedule) -> None:
        with suppress(Refused):
            lowered = lower(schedule.func, SIM, check=True)
            np.testing.assert_array_equal(outputs(lowered, arrays)["out"], wanted)
            assert kernel_text(lowered, "entry", SIM)
            taken.append(schedule)

    check()
    return len(taken)


def test_more_steps_behind_a_layers_schedule() -> None:
    assert explore(10, derandomize=True) >= 3


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_many_more_steps_behind_a_layers_schedule() -> None:
    assert explore(150, derandomize=settings().derandomize) >= 50
