"""Kernels on float32 as machine code: nothing is fused, and every host gives the same bits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from kit.kernels.kernel_answers import answer
from kit.kernels.nests import EXAMPLES, REAL_VARIANTS, inputs_of, real
from kit.objects.hosts import X86, runs_here
from numpy.typing import NDArray
from tilefarm.real import FUNCTIONS
from tilefarm.workload import PARAMETERS

from driver.network.integer.reference import run_workload

CASES: Final = {
    **{name: work for name, work in EXAMPLES.items() if name.startswith("real")},
    **REAL_VARIANTS,
}
Arrays = Mapping[str, NDArray[Any]]

_PARAMETERS: Final = {
    **dict.fromkeys(("celu", "elu", "leaky_relu", "thresholded_relu"), (1.25,)),
    **dict.fromkeys(("hard_sigmoid", "selu", "shrink"), (1.5, 0.5)),
    "power": (-3.0,),
    "wrap": (-128.0, 256.0),
}


@pytest.mark.parametrize("name", CASES)
def test_products_and_sums_round_by_themselves(name: str, tmp_path: Path) -> None:
    if not runs_here("avx2"):
        pytest.skip("this machine does not run code for AVX2, which can fuse them")
    work = CASES[name]
    arrays = inputs_of(work)
    found = answer(work, X86["avx2"][0], arrays, tmp_path)
    np.testing.assert_array_equal(found, run_workload(work, arrays)["out"])


SPECIAL: Final = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, -1e-40, 3e38, -3e38], np.float32)
"""What floats can be beyond numbers that are usual: denormals, the largest, and no numbers."""


@pytest.mark.parametrize("host", ["sse", "avx2", "avx512"])
@pytest.mark.parametrize("name", CASES)
def test_infinities_denormals_and_no_numbers_have_defined_results(
    name: str, host: str, tmp_path: Path
) -> None:
    if not runs_here(host):
        pytest.skip(f"this machine does not run code for {host}")
    work = CASES[name]
    arrays = {each: np.array(values) for each, values in inputs_of(work).items()}
    rng = np.random.default_rng(0)
    for values in arrays.values():
        if values.dtype == np.float32:
            at = rng.random(values.shape) < 0.2
            values[at] = rng.choice(SPECIAL, int(at.sum()))
    found, wanted = answer(work, X86[host][0], arrays, tmp_path), run_workload(work, arrays)["out"]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    numbers = ~np.isnan(wanted)
    assert found[numbers].tobytes() == wanted[numbers].tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("host", X86)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_have_the_same_bits_everywhere(function: str, host: str, tmp_path: Path) -> None:
    if not runs_here(host):
        pytest.skip(f"this machine does not run code for {host}")
    far = np.concatenate([np.linspace(-110, 95, 200), 10.0 ** np.linspace(-44, 38, 99), [0.0]])
    x = np.concatenate([np.linspace(-12, 12, 301), far]).astype(np.float32).reshape(1, -1)
    attrs = dict(zip(PARAMETERS, _PARAMETERS.get(function, ()), strict=False))
    work = real("real_map", x.shape, {"function": function, **attrs}, x=x.shape)
    found, wanted = answer(work, X86[host][0], {"x": x}, tmp_path), run_workload(work, {"x": x})
    numbers = ~np.isnan(wanted["out"])
    assert found[numbers].tobytes() == wanted["out"][numbers].tobytes()
