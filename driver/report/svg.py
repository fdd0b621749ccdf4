"""SVG as text: escaped elements, a canvas, and linear or logarithmic scales with round ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tilefarm.printable import page_text as escape

PALETTE = (
    "#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2",
    "#be185d", "#65a30d", "#4b5563", "#b45309", "#0d9488", "#9333ea",
)  # fmt: skip
"""Colours that stay apart for most eyes, on white."""

Number = int | float


def element(tag: str, *content: str, **attributes: Number | str) -> str:
    """One SVG element. Attribute names write `_` for `-`; content is markup, already escaped."""
    spelled = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_spell(value))}"'
        for name, value in attributes.items()
    )
    inside = "".join(content)
    return f"<{tag}{spelled}>{inside}</{tag}>" if inside else f"<{tag}{spelled}/>"


def label(x: Number, y: Number, words: str, **attributes: Number | str) -> str:
    """Text at a place; escaped."""
    return element("text", escape(words), x=x, y=y, **attributes)


def box(
    x: Number,
    y: Number,
    width: Number,
    height: Number,
    fill: str,
    tip: str = "",
    **more: Number | str,
) -> str:
    """A rectangle with words that show when the pointer rests on it."""
    inside = (element("title", escape(tip)),) if tip else ()
    return element("rect", *inside, x=x, y=y, width=width, height=height, fill=fill, **more)


def drawing(width: Number, height: Number, *content: str, words: str) -> str:
    """A whole picture that scales with its column; `words` say what it shows."""
    return element(
        "svg",
        *content,
        viewBox=f"0 0 {_spell(width)} {_spell(height)}",
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_label=words,
    )


def colour(index: int) -> str:
    """A colour for the thing with this number."""
    return PALETTE[index % len(PALETTE)]


@dataclass(frozen=True, slots=True)
class AxisScale:
    """Maps values of [low, high] to pixels of [start, end]."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: Number) -> float:
        low, high, at = map(self._position, (self.low, self.high, value))
        return self.start + (at - low) / ((high - low) or 1.0) * (self.end - self.start)

    def _position(self, value: float) -> float:
        return math.log10(max(value, 1e-12)) if self.logarithmic else value

    def ticks(self, most: int = 6) -> list[float]:
        """Round values within the scale."""
        return (
            _log_ticks(self.low, self.high)
            if self.logarithmic
            else _ticks(self.low, self.high, most)
        )


def axes(
    x: AxisScale, y: AxisScale, *, x_words: str, y_words: str, y_text: Callable[[float], str]
) -> str:
    """Grid lines, tick labels and the names of both axes."""
    parts: list[str] = []
    for value in y.ticks():
        at = y(value)
        parts.append(element("line", x1=x.start, x2=x.end, y1=at, y2=at, class_="grid"))
        parts.append(label(x.start - 6, at + 4, y_text(value), text_anchor="end", class_="tick"))
    for value in x.ticks(8):
        at = x(value)
        parts.append(element("line", x1=at, x2=at, y1=y.start, y2=y.start + 4, class_="axis"))
        parts.append(label(at, y.start + 17, short(value), text_anchor="middle", class_="tick"))
    parts.append(element("line", x1=x.start, x2=x.end, y1=y.start, y2=y.start, class_="axis"))
    parts.append(label(x.end, y.start + 34, x_words, text_anchor="end", class_="name"))
    parts.append(label(x.start, y.end - 8, y_words, class_="name"))
    return "".join(parts)


def rulers(
    x: AxisScale, top: float, bottom: float, text: Callable[[float], str] | None = None
) -> Iterator[str]:
    """Lines down a chart of rows at round values, which stand below it."""
    for value in x.ticks(8):
        at = x(value)
        yield element("line", x1=at, x2=at, y1=top, y2=bottom + 4, class_="grid")
        words = (text or short)(value)
        yield label(at, bottom + 18, words, text_anchor="middle", class_="tick")


def legend(
    rows: Iterable[tuple[str, str]], left: float, *, apart: float = 90, y: float = 8
) -> Iterator[str]:
    """What each colour means: (words, fill) side by side above a chart."""
    for index, (words, fill) in enumerate(rows):
        at = left + apart * index
        yield box(at, y, 10, 10, fill)
        yield label(at + 15, y + 9, words, class_="tick")


def steps(points: Sequence[tuple[float, float]], x: AxisScale, y: AxisScale) -> str:
    """The path of a step line through points, held until the next and to the scale's end."""
    if not points:
        return ""
    path = f"M{_spell(x(points[0][0]))},{_spell(y(points[0][1]))}"
    for at, value in points[1:]:
        path += f"H{_spell(x(at))}V{_spell(y(value))}"
    return path + f"H{_spell(x.end)}"


def short(value: float) -> str:
    """A number in few characters: 1234567 -> 1.23M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _spell(value: Number | str) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _ticks(low: float, high: float, most: int) -> list[float]:
    if high <= low:
        return [low]
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1, 2, 5, 10) if m * power >= raw), 10 * power)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    marks = (1, 2, 5) if last - first < 4 else (1,)
    values = [m * 10.0**e for e in range(first, last + 1) for m in marks]
    return [v for v in values if low * 0.999 <= v <= high * 1.001]
