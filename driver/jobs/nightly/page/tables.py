"""Tables whose cells a script can sort: markup beside the value that it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilefarm.printable import page_text as escape


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Attributes:
        markup: escaped already.
        value: what it is sorted by; None: by its text.
        is_number: it has digits that people compare.
    """

    markup: str
    value: float | str | None = None
    is_number: bool = False

    def __str__(self) -> str:
        value = "" if self.value is None else f' data-value="{escape(str(self.value))}"'
        return f"<td{' class=n' if self.is_number else ''}{value}>{self.markup}</td>"


@dataclass(frozen=True, slots=True)
class TableRow:
    """Cells; `verdicts` are what the row may be filtered by, `anchor` what a link may point at."""

    cells: Sequence[Cell]
    verdicts: Sequence[str] = ()
    anchor: str = ""

    def __str__(self) -> str:
        words = escape(" ".join(self.verdicts))
        verdict = f' data-verdict="{words}"' if words else ""
        anchor = f' id="{escape(self.anchor)}"' if self.anchor else ""
        return f"<tr{verdict}{anchor}>{''.join(map(str, self.cells))}</tr>"


def sortable(head: Sequence[str], rows: Iterable[TableRow], *, is_sorted: bool = True) -> str:
    """A table; of those of one page, the first that may be sorted is."""
    top = "".join(f"<th scope=col>{escape(cell)}</th>" for cell in head)
    kind = " class=sortable" if is_sorted else ""
    return (
        f"<div class=scroll><table{kind}><thead><tr>{top}</tr></thead>"
        f"<tbody>{''.join(map(str, rows))}</tbody></table></div>"
    )
