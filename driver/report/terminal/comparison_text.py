"""A comparison with another library as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from driver.report.comparison import Comparison, LibraryTime
from driver.report.cost import gain, microseconds
from driver.report.terminal.text_table import text_table

_SHOWN: Final = 10
"""Layers of the other library in the terminal; the report has them all."""


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """For a terminal: the whole network, and the layers that take the library longest."""
    rows = [("this program", microseconds(comparison.seconds), "")]
    rows += [
        (f"{comparison.library}, {each.kind}", microseconds(each.seconds), _times(comparison, each))
        for each in comparison.times
    ]
    yield from text_table(("whole network, in turns", "least", "of ours"), rows)
    longest = sorted(comparison.layers, key=lambda each: -each.seconds)[:_SHOWN]
    if longest:
        yield ""
        cells = [(each.name, each.operator, microseconds(each.seconds)) for each in longest]
        yield from text_table(("its longest layers", "operator", "least"), cells)


def _times(comparison: Comparison, each: LibraryTime) -> str:
    """How many times our time the library takes."""
    return f"{gain(each.seconds, comparison.seconds) or 0:.2f}x"
