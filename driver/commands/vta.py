"""`tilefarm vta`: look at, run, check and record programs of the accelerator."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final

from driver.commands import add_actions, load

ACTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "check": (
        "driver.commands.vta_actions.check",
        "compare cycles and memory with what program files promise",
    ),
    "run": ("driver.commands.vta_actions.run", "run a program file on the simulator"),
    "show": ("driver.commands.vta_actions.show", "print a program's instructions and what they do"),
    "dump": (
        "driver.commands.vta_actions.dump",
        "compile a layer and write what it runs as program files",
    ),
}
"""Name of the action: (module, caption)."""

_EPILOG = """\
A program is an .npz file: instructions, memory before, and what must come out.

examples:
  tilefarm vta dump --conv 64,64,56,56,3,1,1 --out c2
  tilefarm vta check c2
  tilefarm vta show c2/*.npz
  tilefarm vta run c2/*.npz --svg timeline.svg

exit codes:
  0 done; check: every program agrees
  1 check: a program answers otherwise than its file says; run: it is wrong on that hardware
  2 a file, an option or an instruction cannot be used; the line names the field or instruction
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions with their options."""
    parser.epilog = _EPILOG
    add_actions(parser, ACTIONS)


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    return load(ACTIONS[args.action][0]).run(args)
