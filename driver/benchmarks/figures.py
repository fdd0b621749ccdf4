"""Figures beside their goals, as rows of a table and of a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from driver.report.terminal.text_table import text_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number. With a goal it must be at most that, or at least that where more is better."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    more_is_better: bool = False

    @property
    def is_met(self) -> bool:
        """Whether there is no goal, or it is reached; what is not a number reaches none."""
        if self.goal is None:
            return True
        return self.value >= self.goal if self.more_is_better else self.value <= self.goal

    def row(self) -> dict[str, Any]:
        """For a document."""
        return asdict(self) | {"met": self.is_met if self.goal is not None else None}


def figure_table(figures: Sequence[Figure]) -> Iterator[str]:
    """A line for each, with its goal and whether it is met."""
    rows = [(f.name, f"{f.value:.4g}", f.unit, *_verdict(f)) for f in figures]
    return text_table(("", "measured", "", "goal", ""), rows)


def _verdict(figure: Figure) -> tuple[str, str]:
    if figure.goal is None:
        return "", ""
    sign = ">=" if figure.more_is_better else "<="
    return f"{sign} {figure.goal:g}", "met" if figure.is_met else "missed"
