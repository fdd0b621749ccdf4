"""`tilefarm history`: what nights have measured of a zoo; accepted, merged, exported, pruned."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from driver.commands import add_actions, load

_ROOM: Final = "driver.commands.history_actions"
ACTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "list": (f"{_ROOM}.list", "list the nights, with their verdicts"),
    "show": (f"{_ROOM}.show", "list what nights say of one row"),
    "accept": (f"{_ROOM}.accept", "take what a night measured as what a row costs from then on"),
    "merge": (f"{_ROOM}.merge", "add what other histories of the zoo know"),
    "export": (f"{_ROOM}.export", "write everything as one JSON document, or as tables in CSV"),
    "prune": (f"{_ROOM}.prune", "drop old nights, or what their layers took"),
    "check": (f"{_ROOM}.check", "read all of the file in search of damage"),
}
"""Name of the action: (module, caption)."""

_EPILOG: Final = """\
`tilefarm nightly --history DIR` writes DIR/history.sqlite; all of these name the folder or the
file. Histories of several machines are merged in any order to the same.

examples:
  tilefarm history list --history nights
  tilefarm history show 'resnet18 on sim' --history nights --last 30
  tilefarm history accept 'resnet18 on sim' --why 'the price of saturation' --history nights
  tilefarm history merge other/nights --history nights
  tilefarm history export nights.json --history nights
  tilefarm history export tables --csv --history nights
  tilefarm history prune --nights 3650 --layers 365 --history nights
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions with their options."""
    parser.epilog = _EPILOG
    for one in add_actions(parser, ACTIONS):
        one.add_argument(
            "--history", type=Path, required=True, metavar="DIR", help="of the nights, or the file"
        )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    return load(ACTIONS[args.action][0]).run(args)
