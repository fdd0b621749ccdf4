"""How the page says times, changes and verdicts: a sign and a colour that need no other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tilefarm.digest import Digest
from tilefarm.measurement import DeviceClock
from tilefarm.printable import page_text as escape

from driver.jobs.nightly.records import Judged, Row, Sample, Verdict

SIGNS: Final[Mapping[Verdict, str]] = {
    Verdict.SLOWER: "▲",
    Verdict.CHANGED_ANSWER: "≠",
    Verdict.NOT_MEASURED: "∅",
    Verdict.UNSTABLE: "∿",
    Verdict.DEVICE_CHANGED: "⇄",
    Verdict.FASTER: "▼",
    Verdict.INSUFFICIENT_HISTORY: "…",
    Verdict.UNCHANGED: "=",
}
"""Of each verdict, those that matter most first."""

_NOT_OF_A_NAME: Final = re.compile(r"[^a-z0-9.]+")
_MOST_OF_A_NAME: Final = 60


def verdict_words(verdict: Verdict) -> str:
    """NOT_MEASURED -> not measured."""
    return verdict.value.replace("_", " ").lower()


def badge(verdict: Verdict) -> str:
    """A verdict as markup: its sign, its words, its colour."""
    return f'<span class="verdict {verdict.value}">{SIGNS[verdict]} {verdict_words(verdict)}</span>'


def cost_text(cost: float, clock: DeviceClock) -> str:
    """12345678 cycles -> 12 345 678; seconds in the unit in which they have three digits."""
    if clock is DeviceClock.CYCLES:
        return f"{cost:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if cost >= size:
            return f"{cost / size:.4g} {unit}"
    return f"{cost / 1e-6:.4g} us"


def sample_text(sample: Sample) -> str:
    """What it took, and its spread where a clock has told it."""
    time, clock = sample.time, sample.machine.clock
    if clock is DeviceClock.CYCLES:
        return f"{cost_text(time.cost, clock)} cycles"
    return f"{cost_text(time.cost, clock)} ± {spread(sample):.1%}"


def spread(sample: Sample) -> float:
    """Half of the way from the tenth to the ninetieth percentile, as a share of the median."""
    return (sample.time.high - sample.time.low) / 2 / sample.time.cost


def change_text(judged: Judged | None) -> str:
    """+3.0 % where something is compared and has changed; else nothing."""
    if judged is None or not judged.change:
        return ""
    return f"{100 * judged.change:+.2f} %"


def commit_text(sample: Sample) -> str:
    """The code in few signs: a commit where there is one."""
    order = sample.order
    return order.commit[:9] + "+" * order.commit.endswith("+") if order.commit else order.code.short


def night_text(name: str) -> str:
    """2026-11-26T21:00:00Z -> 2026-11-26."""
    return escape(name.partition("T")[0])


def row_file(row: Row) -> str:
    """The name of a row's page: readable, and no other row's."""
    return f"{_file_name(f'{row.model}-on-{row.target}')}.html"


def night_file(name: str) -> str:
    """The name of a night's page."""
    return f"{_file_name(name.lower().replace(':', ''))}.html"


def _file_name(words: str) -> str:
    """Letters that every file system and every link takes; a digest where others were left out."""
    plain = _NOT_OF_A_NAME.sub("-", words.lower()).strip("-.")[:_MOST_OF_A_NAME]
    return plain if plain == words else f"{plain}-{Digest.of(words.encode()).hex[:6]}"
