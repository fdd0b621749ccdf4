"""How much worse a row may get before somebody has to look."""

from __future__ import annotations

from dataclasses import dataclass

from tilefarm.errors import SettingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """What does not fail.

    Attributes:
        cycles: more of them than accepted, as a share. Half a percent is what an aligned buffer or
            one more instruction in a prologue costs; such changes are listed and pass.
        seconds: by a clock, a share below which nothing is called a change, however sure it is.
        least_score: of the answers, by their first measure; None without a gate.

    Raises:
        SettingsError: a share is not within 0 and 1.
    """

    cycles: float = 0.005
    seconds: float = 0.01
    least_score: float | None = None

    def __post_init__(self) -> None:
        for name in ("cycles", "seconds"):
            share: float = getattr(self, name)
            if not 0 <= share < 1:
                raise SettingsError(
                    f"a gate of {100 * share:g} % more {name}: not between 0 and 100 %",
                    "0.5 % of cycles, or 1 % of seconds",
                )
