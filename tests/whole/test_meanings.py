"""The driver's reference and the compiler's nests are written apart; they mean the same bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from kit.examples import examples
from kit.kernels import nests
from tilefarm.workload import Workload

from compile_worker.ir.interpret import interpret
from compile_worker.te import nest_of
from driver.network.integer.reference import run_workload


def agree(work: Workload, seed: int) -> None:
    arrays = nests.inputs_of(work, seed)
    wanted = run_workload(work, arrays)["out"]
    found = interpret(nest_of(work, nests.SIM), arrays | nests.begun(work))["out"]
    assert (found.dtype, found.size) == (wanted.dtype, wanted.size)
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", nests.EXAMPLES)
def test_reference_and_nest_agree_on_examples(name: str, seed: int) -> None:
    agree(nests.EXAMPLES[name], seed)


@given(nests.convolutions())
@settings(max_examples=examples(20), deadline=None)
def test_reference_and_nest_agree_on_any_convolution(work: Workload) -> None:
    agree(work, 0)
