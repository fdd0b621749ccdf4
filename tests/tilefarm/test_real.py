"""Functions as float32 operations are near the real ones, and exact where they say so."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pytest
from tilefarm.real import COMBINATIONS, FUNCTIONS, is_exact, sums_of_neighbours
from tilefarm.real_arrays import applied, combined

from driver.network.graph.functions import FUNCTIONS as REALS
from driver.network.graph.functions import evaluate

NEAR_ZERO: Final = np.linspace(-12, 12, 4001)
FAR: Final = np.concatenate([np.linspace(-110, 95, 2001), 10.0 ** np.linspace(-44, 38, 500)])
X: Final = np.concatenate([NEAR_ZERO, FAR]).astype(np.float32)
PARAMETERS: Final = {
    "celu": (1.3,),
    "elu": (1.1,),
    "hard_sigmoid": (0.2, 0.5),
    "leaky_relu": (0.1,),
    "power": (3.0,),
    "selu": (1.67, 1.05),
    "shrink": (0.1, 0.5),
    "thresholded_relu": (1.0,),
    "wrap": (-2.0, 4.0),
}
EXACT: Final = ("abs", "ceil", "floor", "neg", "round", "sign", "thresholded_relu")


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() & REALS.keys()))
def test_functions_are_near_the_real_ones(name: str) -> None:
    parameters = PARAMETERS.get(name, ())
    found, wanted = applied(name, X, parameters), evaluate(name, X, parameters)
    assert found.dtype == np.float32
    if name in EXACT:
        np.testing.assert_array_equal(found, wanted)
        return
    with np.errstate(over="ignore"):
        finite = np.isfinite(wanted.astype(np.float32))
    np.testing.assert_array_equal(np.isfinite(found), finite)
    np.testing.assert_allclose(found[finite], wanted[finite], rtol=3e-7, atol=1e-6)


def test_every_function_is_one_of_those_with_tables() -> None:
    assert FUNCTIONS.keys() - REALS.keys() == {"same"}
    np.testing.assert_array_equal(applied("same", X), X)


def test_exponentials_reach_both_ends_of_float32() -> None:
    ends = applied("exp", np.array([-1e9, -87.5, -86.0, 0.0, 88.72, 89.0, 1e9], np.float32))
    assert (ends[:2] == 0).all(), "there are no denormals"
    assert math.isclose(ends[2], math.exp(-86.0), rel_tol=2e-7)
    assert ends[3] == 1
    assert math.isclose(ends[4], math.exp(np.float32(88.72)), rel_tol=2e-7)
    assert np.isinf(ends[5:]).all()


def test_numbers_in_a_row_are_combined_side_by_side_where_each_sum_has_two_at_least() -> None:
    many = {3: 1, 7: 1, 8: 4, 15: 4, 16: 8, 64: 32, 127: 32, 128: 64, 5000: 64}
    assert {count: sums_of_neighbours(count) for count in many} == many


def test_logarithms_of_what_is_not_positive() -> None:
    assert (applied("log", np.array([0.0, -0.0], np.float32)) == -np.inf).all()
    assert np.isnan(applied("log", np.array([-2.0, -1e-45, -np.inf, np.nan], np.float32))).all()
    assert applied("log", np.array([np.inf], np.float32)) == np.inf


_SPECIAL: Final = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38], np.float32)


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() & REALS.keys() - {"wrap"}))
def test_functions_of_nan_and_infinities_are_what_numpy_gives(name: str) -> None:
    parameters = PARAMETERS.get(name, ())
    found = applied(name, _SPECIAL, parameters)
    with np.errstate(over="ignore"):
        wanted = evaluate(name, _SPECIAL, parameters).astype(np.float32)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    infinite = np.isinf(wanted)
    np.testing.assert_array_equal(np.isinf(found), infinite)
    np.testing.assert_array_equal(found[infinite], wanted[infinite])


@pytest.mark.parametrize("exponent", [-3.0, -2.0, -1.0, -0.5, 0.5, 2.0, 3.0])
def test_powers_of_nan_and_infinities_are_what_numpy_gives(exponent: float) -> None:
    found = applied("power", _SPECIAL, (exponent,))
    with np.errstate(all="ignore"):
        wanted = np.power(_SPECIAL, np.float32(exponent))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(found[np.isinf(wanted)], wanted[np.isinf(wanted)])


@pytest.mark.parametrize("name", ["max", "min"])
def test_an_extreme_is_nan_where_one_operand_is(name: str) -> None:
    a, b = (each.reshape(-1) for each in np.meshgrid(_SPECIAL, _SPECIAL))
    wanted = (np.maximum if name == "max" else np.minimum)(a, b)
    np.testing.assert_array_equal(combined(name, a, b), wanted)


@pytest.mark.parametrize("exponent", [2.0, -1.0, 0.5, -0.5, 8.0])
def test_powers_that_are_few_multiplications_are_exact_functions(exponent: float) -> None:
    assert is_exact("power", (exponent,))
    x = np.array([0.25, 1.5, 9.0], np.float32)
    np.testing.assert_allclose(applied("power", x, (exponent,)), x**exponent, rtol=5e-7)


@pytest.mark.parametrize(
    ("name", "parameters"), [("power", (1.7,)), ("power", (0.0,)), ("power", (9.0,)), ("acosh", ())]
)
def test_others_are_not(name: str, parameters: tuple[float, ...]) -> None:
    assert not is_exact(name, parameters)


def test_combinations() -> None:
    a, b = np.array([3.0, -3.0, 0.0], np.float32), np.array([2.0, 2.0, 0.0], np.float32)
    wanted = {
        "add": [5, -1, 0],
        "sub": [1, -5, 0],
        "mul": [6, -6, 0],
        "max": [3, 2, 0],
        "min": [2, -3, 0],
        "slope": [3, -6, 0],
    }
    for name, values in wanted.items():
        np.testing.assert_array_equal(combined(name, a, b), values)
    np.testing.assert_array_equal(combined("div", a, b)[:2], [1.5, -1.5])
    assert COMBINATIONS.keys() == {*wanted, "div"}
