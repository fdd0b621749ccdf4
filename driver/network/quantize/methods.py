"""How ranges are read from calibration data, as the user names it: no data, no arrays here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from tilefarm.errors import SettingsError

DEFAULT_PERCENT: Final = 99.99
DEFAULT_METHOD: Final = "minmax"
_LEAST_PERCENT: Final = 50.0
_NAMES: Final = "minmax, percentile, percentile:P or entropy"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationMethod:
    """What decides the range of a tensor.

    Attributes:
        kind: `minmax` covers every value; `percentile` all but the largest; `entropy` loses the
            least information about their distribution.
        percent: of the magnitudes that `percentile` covers.
    """

    kind: Literal["minmax", "percentile", "entropy"] = "minmax"
    percent: float = DEFAULT_PERCENT


MIN_MAX: Final = CalibrationMethod()


def calibration_method(text: str) -> CalibrationMethod:
    """The method that `--calibration` names.

    Raises:
        SettingsError: there is none of that name, or its percentage is none.
    """
    kind, _, percent = text.partition(":")
    if kind == "percentile":
        return CalibrationMethod(kind="percentile", percent=_percent(text, percent))
    if text == "minmax":
        return MIN_MAX
    if text == "entropy":
        return CalibrationMethod(kind="entropy")
    hint = f"--calibrate {text}" if text.endswith(".npz") else f"one of {_NAMES}"
    raise SettingsError(f"--calibration {text}: no such method", hint)


def _percent(text: str, percent: str) -> float:
    try:
        value = float(percent) if ":" in text else DEFAULT_PERCENT
    except ValueError:
        value = 0.0
    if not _LEAST_PERCENT <= value <= 100:
        raise SettingsError(
            f"--calibration {text}: the percentage must be from {_LEAST_PERCENT:g} to 100",
            "percentile:99.9",
        )
    return value
