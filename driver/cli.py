"""The command line: `main(argv) -> exit code`; says little and means it.

What its exit codes mean, and how a failure is told, is in `tilefarm.command_line`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from tilefarm.command_line import HelpFormatter, Parser, guarded, leave
from tilefarm.quiet import quiet_libraries

from driver.commands import COMMANDS, add_command, load

_EPILOG = """\
try it:
  tilefarm demo                                    tune a small network that comes with tilefarm
  tilefarm tune net.onnx --calibrate data.npz      tune yours
  tilefarm COMMAND --help                          what a command does, with examples

exit codes: 0 done; 2 something given cannot be used; 3 no device; 70 a fault of the farm or of the
program; 75 interrupted, or the disk is full: the same command continues; 130 interrupted twice
"""


def parser(wanted: str | None, *, alone: bool = False) -> argparse.ArgumentParser:
    """The parser of all commands, with the options of the wanted one (imported only then).

    Args:
        alone: without the other commands, which take longer than the wanted one.
    """
    shown = {name: said for name, said in COMMANDS.items() if not alone or name == wanted}
    top = Parser(
        prog="tilefarm",
        description="Takes a trained ONNX network and finds the fastest int8 program for a"
        " VTA-class accelerator.",
        epilog=_EPILOG,
        formatter_class=HelpFormatter,
    )
    top.add_argument("--version", action="store_true", help="print the version and end")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    for name, (module, caption) in shown.items():
        one = add_command(commands, name, caption)
        if name == wanted:
            load(module).add_arguments(one)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; every failure is one line, and what to try, on stderr."""
    words = list(sys.argv[1:] if argv is None else argv)
    wanted = next((word for word in words if not word.startswith("-")), None)
    where = f"tilefarm {wanted}" if wanted in COMMANDS else "tilefarm"
    folder: Path | None = None

    def body() -> int:
        nonlocal folder, where
        alone = wanted in COMMANDS and words[0] == wanted  # what comes before may ask for all
        top = parser(wanted, alone=alone)
        args = top.parse_args(words)
        where = args.prog
        if args.version:
            return _version()
        if args.command is None:
            top.print_help()
            return 0
        folder = getattr(args, "out", None)
        return load(COMMANDS[args.command][0]).run(args)

    return guarded(lambda: where, body, out=lambda: folder)


def entry_point() -> NoReturn:
    """What the installed `tilefarm` runs."""
    quiet_libraries()
    leave(main())


def _version() -> int:
    from importlib import metadata

    from tilefarm.rpc.version import PROTOCOL

    try:
        version = metadata.version("tilefarm")
    except metadata.PackageNotFoundError:
        version = "(from its sources, not installed)"
    print(f"tilefarm {version}, protocol {PROTOCOL}")
    return 0


if __name__ == "__main__":
    entry_point()
