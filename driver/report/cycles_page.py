"""A page of where a network's cycles go: a bar a step, cut by cause, and the same as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tilefarm.printable import page_text as escape

from driver.report.html import html_page
from driver.report.svg import AxisScale, box, colour, drawing, label, legend, rulers, short
from driver.report.tables import count, share_bar, table

_LEFT: Final = 210.0
_RIGHT: Final = 930.0
_TOP: Final = 34.0
_LANE: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One step: cycles by cause, none if it does not run on the accelerator.

    Attributes:
        words: what else is known, shown when the pointer rests on it.
        bound: cycles that no schedule goes below.
    """

    name: str
    words: str
    parts: Mapping[str, int]
    bound: int = 0

    @property
    def cycles(self) -> int:
        return sum(self.parts.values())


def cycles_page(title: str, facts: str, causes: Sequence[str], bars: Sequence[Bar]) -> str:
    """The whole page. Every name in it is escaped: models are untrusted text."""
    total = sum(bar.cycles for bar in bars)
    name = escape(title)
    return html_page(
        name,
        f"<h1>{name}</h1><p class=sub>{count(total)} cycles, the steps one by one · "
        f"{escape(facts)}</p>{_causes(causes, bars, total)}"
        f"<h2>Cycles of every step</h2>{_chart(causes, bars)}"
        f"<h2>Steps</h2>{_steps(causes, bars, total)}",
    )


def _causes(causes: Sequence[str], bars: Sequence[Bar], total: int) -> str:
    """A tile a cause: its cycles and its share."""
    tiles = []
    for cause in causes:
        cycles = sum(bar.parts.get(cause, 0) for bar in bars)
        share = f"{cause}, {100 * cycles / (total or 1):.1f} %"
        tiles.append(f"<div class=tile><b>{count(cycles)}</b><span>{escape(share)}</span></div>")
    return f"<div class=tiles>{''.join(tiles)}</div>"


def _chart(causes: Sequence[str], bars: Sequence[Bar]) -> str:
    bottom = _TOP + _LANE * len(bars)
    x = AxisScale(0, max((bar.cycles for bar in bars), default=1) or 1, _LEFT, _RIGHT)
    colours = [(cause, colour(index)) for index, cause in enumerate(causes)]
    parts = [*legend(colours, _LEFT, apart=80), *rulers(x, _TOP, bottom)]
    for row, bar in enumerate(bars):
        parts += _bar(bar, _TOP + _LANE * row, x, causes)
    return drawing(1000, bottom + 30, *parts, words="Cycles of every step by cause")


def _bar(bar: Bar, y: float, x: AxisScale, causes: Sequence[str]) -> Iterator[str]:
    shown = bar.name if len(bar.name) <= _LONGEST else f"{bar.name[: _LONGEST - 1]}…"
    yield label(_LEFT - 8, y + 14, shown, text_anchor="end", class_="tick")
    begin = 0
    for index, cause in enumerate(causes):
        cycles = bar.parts.get(cause, 0)
        if cycles:
            tip = f"{bar.name}: {cause} {cycles} of {bar.cycles} cycles; {bar.words}"
            width = x(begin + cycles) - x(begin)
            yield box(x(begin), y + 3, width, _LANE - 6, colour(index), tip)
        begin += cycles
    words = short(bar.cycles) if bar.cycles else "on the processor"
    yield label(x(bar.cycles) + 6, y + 14, words, class_="name")


_LONGEST: Final = 30


def _steps(causes: Sequence[str], bars: Sequence[Bar], total: int) -> str:
    head = ("step", *causes, "cycles", "share", "of bound")
    return table(head, (_cells(bar, causes, total) for bar in bars))


def _cells(bar: Bar, causes: Sequence[str], total: int) -> tuple[str, ...]:
    name = f'<span title="{escape(bar.words)}">{escape(bar.name)}</span>'
    if not bar.parts:
        return (name, *["–"] * (len(causes) + 1), "–", "–")
    return (
        name,
        *(count(bar.parts.get(cause, 0)) for cause in causes),
        f"<b>{count(bar.cycles)}</b>",
        f"{100 * bar.cycles / (total or 1):.1f} %",
        share_bar(bar.bound / bar.cycles if bar.bound else None),
    )
