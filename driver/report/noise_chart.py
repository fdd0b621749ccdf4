"""The picture of noise: a column a layer, how far it is from float, and what put it there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from driver.report.svg import AxisScale, axes, box, colour, drawing, element, label

_WIDTH, _HEIGHT = 1100, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 1080, 36, 250
_FULL_DB: Final = 60.0
"""The top of the picture: int8 cannot do much better."""
_LEAST_GAP: Final = 0.15
"""Of a column's place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseRow:
    """One layer.

    Attributes:
        ratio_db: signal to noise of its result; infinite where nothing differs.
        shares: of its noise's energy by source, in one order for all layers; none are known: empty.
    """

    name: str
    ratio_db: float
    shares: tuple[tuple[str, float], ...]


def noise_chart(rows: Sequence[NoiseRow]) -> str:
    """Columns as high as the signal-to-noise ratio, divided by the noise's sources."""
    if not rows:
        return "<p>No layer was compared with float.</p>"
    names = next((tuple(name for name, _ in row.shares) for row in rows if row.shares), ())
    x = AxisScale(0, len(rows), _LEFT, _RIGHT)
    y = AxisScale(0, _FULL_DB, _BOTTOM, _TOP)
    columns = "".join(_column(at, row, x, y, names) for at, row in enumerate(rows))
    keys = "".join(_key(at, name) for at, name in enumerate(names))
    frame = axes(x, y, x_words="layers, in order", y_words="SQNR, dB", y_text=lambda v: f"{v:g}")
    words = "signal to quantization noise of every layer, divided by where the noise comes from"
    return drawing(_WIDTH, _HEIGHT, frame, columns, keys, words=words)


def _column(at: int, row: NoiseRow, x: AxisScale, y: AxisScale, names: Sequence[str]) -> str:
    high = min(max(row.ratio_db, 0.0), _FULL_DB)
    left, width = x(at + _LEAST_GAP / 2), x(1 - _LEAST_GAP) - x(0)
    ratio = "exact" if math.isinf(row.ratio_db) and row.ratio_db > 0 else f"{row.ratio_db:.1f} dB"
    told = ", ".join(f"{name} {100 * share:.0f} %" for name, share in row.shares)
    tip = f"{row.name}: {ratio}" + (f"; noise: {told}" if told else "")
    parts, below = [], 0.0
    for name, share in row.shares:
        top, end = y(high * (below + share)), y(high * below)
        parts.append(box(left, top, width, end - top, colour(names.index(name)), tip))
        below += share
    if not below:
        parts.append(box(left, y(high), width, y(0) - y(high), "#d1d5db", tip))
    return element("g", *parts)


def _key(at: int, name: str) -> str:
    left = _RIGHT - 420 + 105 * at
    return box(left, 8, 12, 12, colour(at)) + label(left + 17, 18, name)
