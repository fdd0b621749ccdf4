"""One number that says how near answers are to what they should be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["%", "dB", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A number; larger is better unless it is an error, which has no unit.

    Attributes:
        name: the field's word for it.
        unit: "%" of what could be reached, "dB", or nothing.
        value: infinite dB mean that nothing differs; None: the samples say nothing about it.
    """

    name: str
    unit: Unit
    value: float | None


def value_text(unit: Unit, value: float | None) -> str:
    """A value as people write it; a dash for none."""
    if value is None:
        return "-"
    if unit == "dB" and math.isinf(value) and value > 0:
        return "exact"
    return f"{value:.1f} {unit}" if unit else f"{value:.4g}"
