"""The promise: how many points the integers may lose against float; no arrays here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilefarm.errors import SettingsError

DEFAULT_POINTS: Final = 1.0
"""What holds where nothing is said."""
_ROUNDING: Final = 1e-9
"""Of differences of percentages in float64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What may be lost.

    Attributes:
        points: of the measure that says most, in per cent: of labels where there are some,
            otherwise of agreement with float.
        is_said: the user asked for it; otherwise it is the default, and a broken one is a warning.

    Raises:
        SettingsError: no loss is like that.
    """

    points: float = DEFAULT_POINTS
    is_said: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.points <= 100:
            raise SettingsError(
                f"--max-loss {self.points:g}: not a number of points from 0 to 100", "--max-loss 1"
            )

    @property
    def limit(self) -> float:
        """What a loss is compared with: the points, and what percentages are rounded by."""
        return self.points + _ROUNDING
