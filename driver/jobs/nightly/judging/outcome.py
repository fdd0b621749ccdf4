"""A verdict before it is one of a row in a night."""

from __future__ import annotations

from dataclasses import dataclass

from driver.jobs.nightly.records import Verdict


@dataclass(frozen=True, slots=True)
class Outcome:
    """See `records.Judged`."""

    verdict: Verdict
    why: str = ""
    change: float | None = None
    against: str = ""


def percent(change: float) -> str:
    """A change without its sign, with as many digits as say something: 0.05 %, 3.1 %, 12 %."""
    share = abs(100 * change)
    return f"{share:.2f} %" if share < 1 else f"{share:.1f} %" if share < 10 else f"{share:.0f} %"
