"""The command line: `main(argv) -> exit code`; says little and means it.

Exit codes: 0 done; 2 something given cannot be used; 3 no device; 70 the farm's or the program's
own fault; 75 interrupted, the same command continues; 130 interrupted twice.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from tilefarm.errors import SettingsError, TilefarmError

from driver.commands import COMMANDS, Command

EXIT_INTERNAL: Final = 70
EXIT_INTERRUPTED: Final = 75

_EPILOG = """\
try it:
  tilefarm demo                                    tune a small network that comes with tilefarm
  tilefarm tune net.onnx --calibrate data.npz      tune yours
  tilefarm COMMAND --help                          what a command does, with examples

exit codes: 0 done; 2 something given cannot be used; 3 no device; 70 a fault of the farm or of the
program; 75 interrupted, the same command continues; 130 interrupted twice
"""


class _Parser(argparse.ArgumentParser):
    """argparse whose complaints are errors of ours: one line, exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise SettingsError(message, f"`{self.prog} --help` lists what there is")


def parser(wanted: str | None) -> argparse.ArgumentParser:
    """The parser of all commands, with the options of the wanted one (imported only then)."""
    top = _Parser(
        prog="tilefarm",
        description="Takes a trained ONNX network and finds the fastest int8 program for a"
        " VTA-class accelerator.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="store_true", help="print the version and end")
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    for name, (module, caption) in COMMANDS.items():
        one = commands.add_parser(
            name,
            help=caption,
            description=caption[0].upper() + caption[1:] + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == wanted:
            _load(module).add_arguments(one)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; every failure is one line, and what to try, on stderr."""
    words = list(sys.argv[1:] if argv is None else argv)
    wanted = next((word for word in words if not word.startswith("-")), None)
    where = f"tilefarm {wanted}" if wanted in COMMANDS else "tilefarm"
    folder: Path | None = None
    if sys.stdout is None:  # closed by who started us
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    try:
        top = parser(wanted)
        args, strange = top.parse_known_args(words)
        if strange:
            raise SettingsError(
                f"unrecognized arguments: {' '.join(strange)}",
                f"`{where} --help` lists what there is",
            )
        if args.version:
            return _version()
        if args.command is None:
            top.print_help()
            return 0
        folder = getattr(args, "out", None)
        return _load(COMMANDS[args.command][0]).run(args)
    except TilefarmError as error:
        print(f"{where}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt as interruption:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # an impatient second one while ending
        print(": ".join([where, "interrupted", *interruption.args]), file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # whoever read our output has gone, and half a run is not a run
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0 if folder is None else EXIT_INTERRUPTED
    except Exception as bug:
        log = _write_log(folder)
        reason = str(bug).splitlines()[0] if str(bug) else ""
        print(f"{where}: internal error: {type(bug).__name__}: {reason}", file=sys.stderr)
        print(f"  try: read {log}, and report it", file=sys.stderr)
        return EXIT_INTERNAL


def entry_point() -> NoReturn:
    """What the installed `tilefarm` runs."""
    code = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a late one must not change the exit code
    sys.exit(code)


def _load(module: str) -> Command:
    loaded: Command = importlib.import_module(module)
    return loaded


def _version() -> int:
    from importlib import metadata

    try:
        print(f"tilefarm {metadata.version('tilefarm')}")
    except metadata.PackageNotFoundError:
        print("tilefarm (from its sources, not installed)")
    return 0


def _write_log(folder: Path | None) -> Path:
    """The traceback in a file: in the output folder where there is one, else a temporary one."""
    place = folder if folder is not None and folder.is_dir() else None
    with tempfile.NamedTemporaryFile(
        "w", prefix="tilefarm-error-", suffix=".log", dir=place, delete=False
    ) as log:
        traceback.print_exc(file=log)
    return Path(log.name)


if __name__ == "__main__":
    entry_point()
