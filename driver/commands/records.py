"""`tilefarm records`: the schedules that runs have left in one file, for those to come."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final

from driver.commands import add_actions, load
from driver.commands.options.shared import add_records_option

_ROOM: Final = "driver.commands.records_actions"
ACTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "list": (f"{_ROOM}.list", "list the workloads that are known"),
    "show": (f"{_ROOM}.show", "list the schedules of workloads, the best first"),
    "best": (f"{_ROOM}.best", "print the best schedule of one workload"),
    "export": (f"{_ROOM}.export", "write schedules as JSON, one a line, or as AutoTVM's log"),
    "import": (f"{_ROOM}.import_files", "add schedules of `export`, or of an AutoTVM log of VTA"),
    "merge": (f"{_ROOM}.merge", "add the schedules of other files of records"),
    "prune": (f"{_ROOM}.prune", "drop all but the best schedules"),
}
"""Name of the action: (module, caption)."""

_EPILOG: Final = """\
`tilefarm tune --records FILE.sqlite` begins with the best that is there, and adds what it measures.
Files of several machines are merged in any order to the same.

examples:
  tilefarm tune net.onnx --calibrate data.npz --records team.sqlite
  tilefarm records list --records team.sqlite
  tilefarm records best conv2d_1x4 --records team.sqlite --out best
  tilefarm show --workload best/workload.json --point best/point.json
  tilefarm records export all.jsonl --records team.sqlite
  tilefarm records import theirs.jsonl --records team.sqlite
  tilefarm records import vta_v0.10.log --target pynq-z1 --records team.sqlite
  tilefarm records export best.log --best --autotvm --target pynq-z1 --records team.sqlite
  tilefarm records merge mine.sqlite yours.sqlite --records team.sqlite
  tilefarm records prune --keep 20 --records team.sqlite
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions with their options."""
    parser.epilog = _EPILOG
    for one in add_actions(parser, ACTIONS):
        add_records_option(one, "the file", needed=True)


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    return load(ACTIONS[args.action][0]).run(args)
