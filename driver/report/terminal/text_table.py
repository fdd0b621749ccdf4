"""A table as lines of text: names to the left, numbers to the right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def text_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of a table; its first column is names, the others are numbers."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        name, *numbers = row
        cells = [n.rjust(width) for n, width in zip(numbers, widths[1:], strict=True)]
        yield "  ".join([name.ljust(widths[0]), *cells]).rstrip()
