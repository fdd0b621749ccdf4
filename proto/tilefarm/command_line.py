"""What every command line of ours does alike: complaints, failures and interruptions in one line.

Exit codes: 0 done; 2 something given cannot be used; 3 no device; 70 the farm's or the program's
own fault; 75 interrupted, the same command continues; 130 interrupted twice.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

from tilefarm.errors import OutputError, SettingsError, TilefarmError

EXIT_INTERNAL: Final = 70
EXIT_INTERRUPTED: Final = 75


class Parser(argparse.ArgumentParser):
    """argparse whose complaints are errors of ours: one line, exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise SettingsError(message, f"`{self.prog} --help` lists what there is")


def guarded(
    where: str, body: Callable[[], int], *, out: Callable[[], Path | None] = lambda: None
) -> int:
    """The exit code of a command; every failure is one line, and what to try, on stderr.

    Args:
        where: the command, as the user typed it.
        body: does it, and gives its exit code.
        out: the folder that it writes to, if it has come to know one.
    """
    if sys.stdout is None:  # closed by who started us
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    try:
        code = body()
        sys.stdout.flush()
        return code
    except TilefarmError as error:
        print(f"{where}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt as interruption:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # an impatient second one while ending
        print(": ".join([where, "interrupted", *interruption.args]), file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # whoever read our output has gone, and half a run is not a run
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0 if out() is None else EXIT_INTERRUPTED
    except Exception as bug:
        if isinstance(bug, OSError) and bug.errno == errno.ENOSPC:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush
            print(f"{where}: the disk that this writes to is full", file=sys.stderr)
            print("  try: free some space, or write elsewhere", file=sys.stderr)
            return OutputError.exit_code
        log = _write_log(out())
        reason = str(bug).splitlines()[0] if str(bug) else ""
        print(f"{where}: internal error: {type(bug).__name__}: {reason}", file=sys.stderr)
        print(f"  try: read {log}, and report it", file=sys.stderr)
        return EXIT_INTERNAL


def leave(code: int) -> NoReturn:
    """Ends the process; a late interruption must not change the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def _write_log(folder: Path | None) -> Path:
    """The traceback in a file: in the output folder where there is one, else a temporary one."""
    place = folder if folder is not None and folder.is_dir() else None
    with tempfile.NamedTemporaryFile(
        "w", prefix="tilefarm-error-", suffix=".log", dir=place, delete=False
    ) as log:
        traceback.print_exc(file=log)
    return Path(log.name)
