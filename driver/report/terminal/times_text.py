"""What the times of a plan rest on: measured, modelled, and how far predictions are off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Final

from tilefarm.plural import plural

from driver.report.step_times import MOST_OFF, Basis, ComparedTimes, StepTime, modelled_share
from driver.report.terminal.text_table import text_table

_MOST_ROWS: Final = 12
_MOST_NAMES: Final = 5
_WORDS: Final = {
    Basis.PROGRAM: "measured in the program",
    Basis.KERNEL: "measured as a kernel alone",
    Basis.MODEL: "modelled",
}


def basis_lines(times: Mapping[str, StepTime]) -> Iterator[str]:
    """Where the times come from, and the share of them that nobody measured."""
    counts = Counter(each.basis for each in times.values())
    parts = [f"{plural(counts[basis], 'step')} {_WORDS[basis]}" for basis in Basis if counts[basis]]
    yield f"a tick is a nanosecond; {', '.join(parts)}"
    modelled = [name for name, each in times.items() if each.basis is Basis.MODEL]
    if not modelled:
        return
    modelled.sort(key=lambda name: -times[name].median)
    names = ", ".join(modelled[:_MOST_NAMES]) + (", ..." if len(modelled) > _MOST_NAMES else "")
    yield f"{modelled_share(times):.1%} of the time is modelled: {names}"


def compared_lines(fit: ComparedTimes) -> Iterator[str]:
    """Predicted against measured, the steps that are furthest off first, and what follows."""
    if not fit.steps:
        return
    steps = sorted(fit.steps, key=lambda each: -abs(each.off))
    yield ""
    yield from text_table(
        ("step", "predicted us", "measured us", "off", "basis", ""),
        [
            (
                each.name,
                f"{each.predicted.median / 1000:.2f}",
                f"{each.measured.median / 1000:.2f}",
                f"{each.off:+.1%}",
                each.predicted.basis.value,
                "critical" if each.is_critical else "",
            )
            for each in steps[:_MOST_ROWS]
        ],
    )
    if len(steps) > _MOST_ROWS:
        yield f"and {plural(len(steps) - _MOST_ROWS, 'step')} more that are off by less"
    typical = median(abs(each.off) for each in steps)
    yield f"off by {typical:.1%} in the median of {plural(len(steps), 'step')}"
    if fit.is_refitted:
        yield (
            f"{plural(len(fit.misfits), 'critical step')} off by more than {MOST_OFF:.0%}:"
            " refitted with the measured times and planned anew"
        )
