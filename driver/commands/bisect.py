"""`tilefarm bisect`: which commit made a row of the zoo slower."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilefarm.errors import SettingsError
from tilefarm.plural import plural

from driver.jobs.nightly.words import cost_text
from driver.jobs.nightly.zoo_file import Zoo, ZooRow, read_zoo

if TYPE_CHECKING:
    from driver.jobs.nightly.bisect.checkout import Commit
    from driver.jobs.nightly.bisect.commit_search import CommitSearch
    from driver.jobs.nightly.bisect.row_bisection import RowChange

EXIT_NOT_FOUND = 1
_EPILOG = """\
examples:
  tilefarm bisect zoo.toml --history nights --row 'resnet18 on sim'
  tilefarm bisect zoo.toml --history nights --row 'digits on cpu' --good v1.2 --bad main

Builds commits between the last good night and the first slow one in a worktree of git in the
history's folder, and measures the row with the same schedules, until one commit is left. Cycles
are exact; times of a clock are measured until the noise of the row's nights leaves one. The user's
checkout stays as it is. Commits that do not build, or know no --schedules, are left out. The same
command goes on where it was stopped, and measures nothing twice.
Exit codes: 0 found; 1 there is no change, or several commits may be it; 2 bad input.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("zoo", type=Path, metavar="ZOO.toml", help="as of `tilefarm nightly`")
    option("--history", type=Path, required=True, metavar="DIR", help="as of `tilefarm nightly`")
    option("--row", required=True, metavar="ROW", help="'MODEL on TARGET'")
    option("--good", metavar="COMMIT", help="(default: that of the night it is compared with)")
    option("--bad", metavar="COMMIT", help="(default: that of the first night that was slower)")
    option(
        "--checkout",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="a clone of tilefarm that has the commits (default: this folder)",
    )
    option(
        "--build",
        default="make setup",
        metavar="COMMAND",
        help="that builds a commit, with its .venv/bin/tilefarm (default: make setup)",
    )
    option("--again", action="store_true", help="forget what was measured before")
    option("--json", action="store_true", help="one JSON document")
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    row = _row(read_zoo(args.zoo), args.row)
    build = _words(args.build)
    from driver.jobs.nightly.bisect.row_bisection import RowBisection, row_change
    from driver.jobs.nightly.history.history import History
    from driver.jobs.nightly.night.night import HISTORY

    with History(args.history / HISTORY, read_only=True) as history:
        change = row_change(history, row.row, args.good, args.bad)
    say = sys.stderr if args.json else sys.stdout
    commits, search = RowBisection(
        change=change,
        row=row,
        repository=args.checkout,
        folder=args.history / "bisect",
        build=build,
        say=lambda line: print(line, file=say, flush=True),
    ).run(again=args.again)
    if args.json:
        print(json.dumps(_document(change, commits, search)))
    else:
        print(_verdict(change, commits, search))
    return 0 if len(search.found()) == 1 else EXIT_NOT_FOUND


def _row(zoo: Zoo, name: str) -> ZooRow:
    found = [row for row in zoo.rows if str(row.row) == name]
    if not found:
        names = ", ".join(repr(str(row.row)) for row in zoo.rows[:8])
        raise SettingsError(f"--row {name!r}: the zoo has no such row", f"one of {names}")
    if trouble := found[0].trouble():
        raise SettingsError(trouble, "mend it first: the row cannot be measured")
    return found[0]


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise SettingsError(f"--build {command!r}: {error}", "--build 'make setup'") from None
    if not words:
        raise SettingsError("--build says nothing", "--build 'make setup'")
    return words


def _verdict(change: RowChange, commits: tuple[Commit, ...], search: CommitSearch) -> str:
    """What was found, in words."""
    levels = search.levels
    if levels is None:
        return "one of the two ends cannot be measured: name others by --good and --bad"
    before, now = (cost_text(level, change.clock) for level in levels)
    if not search.has_change:
        return f"no change: {before} at the good end, {now} at the bad one"
    found = [str(commits[at]) for at in search.found()]
    more = f"{before} before, {now} after: {100 * (levels[1] / levels[0] - 1):+.2f} %"
    if len(found) == 1:
        return f"{found[0]}\n  {more}"
    these = f"one of these {plural(len(found), 'commit')}, which cannot be told apart; {more}"
    return "\n".join([these, *(f"  {each}" for each in found)])


def _document(
    change: RowChange, commits: tuple[Commit, ...], search: CommitSearch
) -> dict[str, Any]:
    return {
        "model": change.row.model,
        "target": change.row.target,
        "clock": change.clock.value,
        "levels": search.levels,
        "commits": [
            {"commit": each.name, "title": each.title, "costs": list(search.costs.get(at, ()))}
            for at, each in enumerate(commits)
        ],
        "found": [commits[at].name for at in search.found()],
    }
