"""`tilefarm bench compare`: whether a night was slower than the last accepted one, and where."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tilefarm.errors import DataError, SettingsError

from driver.jobs.nightly.judging.cycles import cycles_verdict
from driver.jobs.nightly.judging.gates import Gates
from driver.jobs.nightly.nights import NETWORK, Cycles, CyclesByName, read_night
from driver.jobs.nightly.records import Verdict
from driver.report.terminal.text_table import text_table

EXIT_SLOWER: Final = 1
_TOLERANCE_PERCENT: Final = 100 * Gates().cycles
_NOTHING: Final = Cycles(cycles=None)

_EPILOG: Final = """\
examples:
  tilefarm bench zoo --json > new.json; tilefarm bench compare accepted.json new.json
  tilefarm bench compare nights/accepted nights/2026-11-20

OLD and NEW are files of `tilefarm bench zoo --json`, folders of `tilefarm tune`, or folders with
such folders, which are compared by their names: the network and every one of its workloads.
Cycles are exact, so every change is listed. Seconds are not compared.

exit codes: 0 nothing fails; 1 something is slower by more than the tolerance, or was lost; 2 bad
input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    parser.add_argument("old", type=Path, metavar="OLD", help="the last accepted night")
    parser.add_argument("new", type=Path, metavar="NEW", help="the night to judge")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=_TOLERANCE_PERCENT,
        metavar="PERCENT",
        help=f"of more cycles that does not fail (default: {_TOLERANCE_PERCENT:g})",
    )
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    if not 0 <= args.tolerance < 100:
        raise SettingsError(f"--tolerance {args.tolerance:g}: not a percentage", "--tolerance 0.5")
    old, new = read_night(args.old), read_night(args.new)
    _require_something_in_common(args.old, old, args.new, new)
    rows = list(_judged(old, new, args.tolerance / 100))
    fails = any(row.verdict.fails for row in rows)
    if args.json:
        told = [asdict(row) | {"change_percent": row.change_percent} for row in rows]
        print(json.dumps({"rows": told, "passes": not fails}))
    else:
        for line in _lines(rows):
            print(line)
    return EXIT_SLOWER if fails else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRow:
    """One row of both nights; the cycles are None where a night lacks it."""

    name: str
    old: int | None
    new: int | None
    verdict: Verdict

    @property
    def change_percent(self) -> float | None:
        """Of the cycles; None where they cannot be compared."""
        if not self.old or self.new is None or self.verdict is Verdict.DEVICE_CHANGED:
            return None
        return 100.0 * (self.new - self.old) / self.old


def _judged(old: CyclesByName, new: CyclesByName, gate: float) -> Iterator[ComparedRow]:
    """Every name of either night, the new one's order first."""
    for name in dict.fromkeys((*new, *old)):
        before, now = old.get(name, _NOTHING), new.get(name, _NOTHING)
        verdict = _verdict(before, now, gate)
        yield ComparedRow(name=name, old=before.cycles, new=now.cycles, verdict=verdict)


def _verdict(before: Cycles, now: Cycles, gate: float) -> Verdict:
    if before.cycles is None:
        return Verdict.INSUFFICIENT_HISTORY
    if now.cycles is None:
        return Verdict.NOT_MEASURED
    if before.device != now.device:
        return Verdict.DEVICE_CHANGED
    return cycles_verdict(before.cycles, now.cycles, gate)


def _require_something_in_common(
    old: Path, before: CyclesByName, new: Path, now: CyclesByName
) -> None:
    """Nothing if the nights are of the same networks, or of some of them.

    Raises:
        DataError: every row would be lost, or new.
    """
    names = [{name for name in night if not name.endswith(NETWORK)} for night in (before, now)]
    if all(names) and not names[0] & names[1]:
        raise DataError(
            f"{old} and {new} are of different networks: no workload is in both",
            "compare runs of one network, or nights with the same ones",
        )


def _lines(rows: Sequence[ComparedRow]) -> Iterator[str]:
    """A table of what is not the same, those that fail first; and how many of each verdict."""
    other = [row for row in rows if row.verdict is not Verdict.UNCHANGED or row.old != row.new]
    if other:
        other.sort(key=lambda row: not row.verdict.fails)
        yield from text_table(("what", "old", "new", "change", "verdict"), list(map(_cells, other)))
        yield ""
    counts = Counter(row.verdict for row in rows)
    yield ", ".join(f"{counts[each]} {each}" for each in Verdict if counts[each])


def _cells(row: ComparedRow) -> tuple[str, ...]:
    old, new = ("-" if n is None else f"{n:,}".replace(",", " ") for n in (row.old, row.new))
    change = row.change_percent
    return row.name, old, new, "-" if change is None else f"{change:+.2f} %", row.verdict.value
