"""`tilefarm targets fit`: the timing of a target as its own measurements say it is."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tilefarm.errors import DataError, SettingsError
from tilefarm.printable import printable, printable_lines
from tilefarm.quiet import quiet_libraries

from driver.commands.options.shared import add_records_option
from driver.commands.records_actions.choosing import opened

if TYPE_CHECKING:
    from tilefarm.target import Target

    from driver.tune.timing.measured import Measured
    from driver.tune.timing.timing_fit import TimingFit

_FITTED: Final = "-fitted-"
_MOST_NAMED: Final = 3
_EPILOG: Final = """\
examples:
  tilefarm targets fit tilefarm-out/resnet18
  tilefarm targets fit runs/a runs/b -o fitted.json    then: tune --target fitted.json
  tilefarm targets fit --records team.sqlite --target board.json --json

A board's memory is seldom as its JSON says. Every space of an accelerator has an estimate of what
its schedules take, with which a search begins; the fit finds the bus_nbytes, log_burst_beats and
dram_delay_cycles under which that estimate is nearest to the trials of the runs, and, where they
were timed by the clock, its rate. What it finds are effective values: a bus that is half as wide
here is one that is busy half of the time. All runs are of one target; one that is not built in is
given with --target. Each workload counts alike, and a few odd times do not decide.

Rows: by how much times are off from what was predicted, in the median and for nine of ten
schedules, under the parameters before, after, and fitted to all other workloads (left out); then
Spearman's rank correlation, 1 where schedules are predicted in the order in which they were
measured. -o writes a target only where workloads that were left out are predicted better than
before. It is another target than the first one: records are kept apart, simulated devices play it
as it says, and devices of a farm are served with the same file.

exit codes: 0 done; 2 the trials cannot be used, or -o asks for a fit that is not better
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("runs", nargs="*", type=Path, metavar="RUN", help="folders that `tilefarm tune` wrote")
    add_records_option(parser, "fit to the schedules in it, too")
    option(
        "--target",
        metavar="NAME|FILE.json",
        help="what they were measured on (default: the built-in one that they name)",
    )
    option("-o", "--output", type=Path, metavar="FITTED.json", help="write the fitted target")
    option("--json", action="store_true", default=argparse.SUPPRESS, help="one JSON document")
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    if not args.runs and args.records is None:
        raise SettingsError("no trials are named", "a folder that `tilefarm tune` wrote")
    if args.output is not None and args.output.suffix != ".json":
        raise SettingsError(
            f"-o {args.output}: --target takes files that end with .json", "-o fitted.json"
        )
    if args.output is not None and not args.output.parent.is_dir():
        raise SettingsError(
            f"-o {args.output}: there is no folder {args.output.parent}", "-o fitted.json"
        )
    quiet_libraries()
    from driver.tune.timing.fit_report import document, lines, objection
    from driver.tune.timing.measured import measured
    from driver.tune.timing.timing_fit import fit

    with ExitStack() as stack:
        store = None
        if args.records is not None:
            store = stack.enter_context(opened(args.records, read_only=True))
        trials = measured(args.runs, store, args.target)
    found = fit(trials, _say)
    fitted = _fitted(trials, found)
    if args.json:
        print(json.dumps(document(trials, found, fitted)))
    else:
        for line in lines(trials, found):
            print(printable_lines(line))
    why_not = objection(trials, found)
    if args.output is not None:
        if why_not:
            raise DataError(
                f"{args.output} is not written: {why_not}", "more workloads, or more trials of them"
            )
        _write(args.output, fitted)
    if not args.json:
        print()
        print(printable(_last_words(args.output, fitted, why_not)))
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _fitted(trials: Measured, found: TimingFit) -> Target:
    """The target with the fitted parameters; its name says to what."""
    more = len(trials.sources) - _MOST_NAMED
    sources = [*trials.sources[:_MOST_NAMED], *([f"{more}-more"] if more > 0 else [])]
    name = f"{trials.target.name.partition(_FITTED)[0]}{_FITTED}{'+'.join(sources)}"
    return replace(found.after.target(trials.target), name=name)


def _write(path: Path, fitted: Target) -> None:
    from driver.atomic_write import write_atomically

    write_atomically(path, f"{fitted.to_json()}\n".encode())


def _last_words(output: Path | None, fitted: Target, why_not: str) -> str:
    if why_not:
        return f"not better: {why_not}"
    if output is None:
        return "better for workloads that were left out; -o FITTED.json writes it"
    return f"{output}: the target {fitted.name}"
