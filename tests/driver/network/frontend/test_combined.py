"""Mod, and Pow of constants and to several exponents, against ONNX's reference evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.networks.onnx_models import model_on, node, saved
from numpy.typing import NDArray
from tilefarm.errors import ModelError

from driver.network import import_model

from .importing import answers_as_onnx

X = np.array([[[-7, -3, 0, 2], [7, 3.5, -0.5, 9]]], np.float32)


@pytest.mark.parametrize(
    ("kind", "fmod"),
    [("float32", 1), ("int64", 0), ("int64", 1), ("int8", 0), ("int8", 1)],
)
def test_what_a_division_leaves(kind: str, fmod: int, tmp_path: Path) -> None:
    given = {"x": X.astype(kind)}
    weights = {"d": np.array([[[3], [-2]]], kind)}
    made = model_on(given, [node("Mod", ["x", "d"], "y", fmod=fmod)], weights, out={"y": kind})
    answers_as_onnx(made, given, tmp_path)


@pytest.mark.parametrize("divisor", ["x", "zero", "infinite"])
def test_divisors_that_leave_no_number(divisor: str, tmp_path: Path) -> None:
    weights = {"zero": np.zeros(1, np.float32), "infinite": np.array([np.inf], np.float32)}
    made = model_on({"x": X}, [node("Mod", ["x", divisor], "y", fmod=1)], weights)
    with pytest.raises(ModelError, match="its divisor must be constant and finite, and not 0"):
        import_model(saved(made, tmp_path))


@pytest.mark.parametrize("exponents", [[3.0, 2.0, 3.0, 1.0], [[2.0], [-1.0]], [[[[0.5]]]]])
def test_an_exponent_for_each_place(exponents: list[Any], tmp_path: Path) -> None:
    given = {"x": np.abs(X) + 1}
    weights = {"e": np.array(exponents, np.float32)}
    answers_as_onnx(model_on(given, [node("Pow", ["x", "e"], "y")], weights), given, tmp_path)


def test_no_element_sees_a_power_that_is_not_its_own(tmp_path: Path) -> None:
    """0 to the power of -1 would be infinite, and spoil what it is multiplied with."""
    given = {"x": np.array([[0, 4]], np.float32)}
    weights = {"e": np.array([2.0, -1.0], np.float32)}
    answers_as_onnx(model_on(given, [node("Pow", ["x", "e"], "y")], weights), given, tmp_path)


def test_whole_powers_of_integers(tmp_path: Path) -> None:
    given = {"x": X.astype(np.int64)}
    powers = node("Pow", ["x", "e"], "y")
    made = model_on(given, [powers], {"e": np.array([2, 3, 2, 0])}, out={"y": "int64"})
    answers_as_onnx(made, given, tmp_path)


def test_powers_of_a_constant(tmp_path: Path) -> None:
    weights = {"b": np.array([0.5, 1, 2, 10], np.float32)}
    answers_as_onnx(model_on({"x": X}, [node("Pow", ["b", "x"], "y")], weights), {"x": X}, tmp_path)


@pytest.mark.parametrize(
    ("inputs", "weights", "said"),
    [
        (["b", "x"], {"b": np.array([-2], np.float32)}, "constant must be positive reals"),
        (["x", "x"], {}, "exponent 'x' is not a constant"),
        (["x", "e"], {"e": np.arange(100, dtype=np.float32)[:, None, None]}, "has 100 exponents"),
    ],
)
def test_powers_that_are_refused(
    inputs: list[str], weights: dict[str, NDArray[Any]], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=said):
        import_model(saved(model_on({"x": X}, [node("Pow", inputs, "y")], weights), tmp_path))
