"""`tilefarm nightly`: the whole zoo measured, judged, kept and published, once a night."""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tilefarm.clock import SystemClock
from tilefarm.command_line import whole_from
from tilefarm.errors import SettingsError
from tilefarm.system_errors import unwritable

from driver.jobs.nightly.zoo_file import Zoo, ZooRow, read_zoo
from driver.settings import wait_from

EXIT_FAILS = 1
EXIT_FAULTS = 2
EXIT_LEFT = 75

_EPILOG = """\
examples:
  tilefarm nightly zoo.toml --history nights
  tilefarm nightly zoo.toml --history nights --only 'resnet18 on sim' --only 'digits*'
  tilefarm nightly zoo.toml --history nights --rows 2 --budget 14400 --junit nights/junit.xml
  tilefarm nightly zoo.toml --history nights --ray auto --prometheus /var/lib/node/tilefarm.prom

zoo.toml:
  name = "ours"
  [night]
  seconds = 14400                  # of the whole night; rows = 2: at a time; keep = 7: folders
  [search]
  trials = 32                      # beyond the known schedules, for each row; seconds, least-gain
  [gate]
  cycles = 0.5                     # percent more that passes; seconds, by a clock
  [[target]]
  name = "sim"
  target = "sim"
  [[target]]
  name = "board"
  target = "pynq-z1"
  tracker = "farm:9190"
  token-file = "farm.token"
  [[model]]
  name = "faces"
  file = "faces.onnx"
  calibrate = "faces.npz"
  sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
  [[model]]
  name = "resnet18"
  file = "zoo:resnet18"
  targets = ["sim"]

Each row, a model on a target, is built from the schedules that an earlier night has adopted, with
the code of tonight, and compared with earlier nights; then a search looks for better ones, which
the next night compiles. The folder of --history has history.sqlite, the page, and the last nights'
output folders. The same command continues a night that was stopped, and measures nothing twice.
Exit codes: 0 nothing fails; 1 something does; 2 bad input, though all else was measured; 75 rows
are left, and the same command does them; 70 a fault.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("zoo", type=Path, metavar="ZOO.toml", help="models, targets, budgets and gates")
    option("--history", type=Path, required=True, metavar="DIR", help="where the nights are kept")
    option(
        "--only",
        action="append",
        default=[],
        metavar="ROW",
        help="'MODEL on TARGET', a model or a target; * stands for any letters; may be repeated",
    )
    option("--rows", type=whole_from(1), metavar="N", help="at a time (default: as ZOO.toml says)")
    option(
        "--budget",
        type=float,
        metavar="S",
        help="seconds of the whole night (default: as ZOO.toml says)",
    )
    option("--trials", type=whole_from(0), metavar="N", help="that a row's search has (likewise)")
    option(
        "--every",
        type=float,
        default=0.0,
        metavar="S",
        help="begin no night within so many seconds after the last one began; what that one said"
        " is told and published again (default: 0)",
    )
    option("--ray", metavar="HOST:PORT", help="compile on this Ray cluster; auto finds it")
    option("--json", action="store_true", help="events as JSON lines")
    _add_outputs(parser)
    parser.epilog = _EPILOG


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    option = parser.add_argument_group("for machines").add_argument
    option("--junit", type=Path, metavar="FILE.xml", help="the night as tests")
    option("--prometheus", type=Path, metavar="FILE.prom", help="for node_exporter's text files")
    option("--webhook", type=Path, metavar="FILE.json", help="the body of a webhook")
    option("--markdown", type=Path, metavar="FILE.md", help="a summary, as GitHub shows it")
    option("--github", action="store_true", help="print annotations of a GitHub workflow")


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    if args.budget is not None:
        wait_from("--budget", args.budget, 1)
    wait_from("--every", args.every, 0)
    zoo = read_zoo(args.zoo)
    rows = _wanted(zoo, args.only)
    if args.trials is not None:
        rows = [replace(row, search=replace(row.search, trials=args.trials)) for row in rows]
    try:
        args.history.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(args.history, error, "choose another --history") from None
    from driver.jobs.nightly.night.events import NightNotice
    from driver.jobs.nightly.night.night import measure_night
    from driver.jobs.nightly.night.night_run import NightSettings
    from driver.jobs.nightly.night.publishing import Outputs
    from driver.jobs.nightly.night.row_command import CompilingPart
    from driver.jobs.nightly.night.watching import NightJson, NightLines, NightView

    at_a_time = args.rows or zoo.night.rows
    processes = max(1, (os.cpu_count() or 1) // at_a_time)
    settings = NightSettings(
        folder=args.history,
        rows=rows,
        seconds=args.budget or zoo.night.seconds,
        every_seconds=args.every,
        at_a_time=at_a_time,
        compiling=CompilingPart(processes=processes, ray=args.ray),
    )
    clock = SystemClock()
    view: NightView = NightJson(sys.stdout) if args.json else NightLines(sys.stdout, clock)
    for fault in zoo.faults:
        view(NightNotice(text=fault))
    outputs = Outputs(
        junit=args.junit,
        prometheus=args.prometheus,
        webhook=args.webhook,
        markdown=args.markdown,
        github=args.github,
    )
    measured = measure_night(settings, zoo, outputs, view, clock=clock)
    code = EXIT_LEFT if measured.left else EXIT_FAILS if measured.fails else 0
    code = code or (EXIT_FAULTS if zoo.faults else 0)
    view.end(code)
    return code


def _wanted(zoo: Zoo, only: Sequence[str]) -> list[ZooRow]:
    """The rows that somebody asks for, all without words.

    Raises:
        SettingsError: there is none of the kind.
    """
    found = set[ZooRow]()
    for words in only:
        of_it = [
            row
            for row in zoo.rows
            if any(
                fnmatch.fnmatchcase(name, words)
                for name in (str(row.row), row.row.model, row.row.target)
            )
        ]
        if not of_it:
            names = ", ".join(f"'{row.row}'" for row in zoo.rows[:5])
            raise SettingsError(f"--only {words}: no such row", f"rows are {names}, ...")
        found.update(of_it)
    return [row for row in zoo.rows if not only or row in found]
