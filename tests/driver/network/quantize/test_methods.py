"""How the user names the way from data to ranges."""

from __future__ import annotations

import pytest
from tilefarm.errors import SettingsError

from driver.network.quantize.methods import (
    MIN_MAX,
    CalibrationMethod,
    calibration_method,
)
from driver.network.quantize.options import Quantization


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("minmax", MIN_MAX),
        ("percentile", CalibrationMethod(kind="percentile", percent=99.99)),
        ("percentile:99.9", CalibrationMethod(kind="percentile", percent=99.9)),
        ("entropy", CalibrationMethod(kind="entropy")),
    ],
)
def test_methods_by_name(text: str, method: CalibrationMethod) -> None:
    assert calibration_method(text) == method


@pytest.mark.parametrize("text", ["", "max", "minmax:9", "entropy:1"])
def test_unknown_methods_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="no such method") as refused:
        Quantization(calibration=text)
    assert "percentile:P" in (refused.value.hint or "")


def test_data_given_as_a_method_are_told_where_they_belong() -> None:
    with pytest.raises(SettingsError, match="no such method") as refused:
        calibration_method("data.npz")
    assert refused.value.hint == "--calibrate data.npz"


@pytest.mark.parametrize("percent", ["", "0", "49.9", "100.1", "nan", "many"])
def test_a_percentage_is_from_50_to_100(percent: str) -> None:
    with pytest.raises(SettingsError, match="from 50 to 100") as refused:
        calibration_method(f"percentile:{percent}")
    assert refused.value.hint == "percentile:99.9"
