"""What every command line of ours does alike: complaints, failures and interruptions in one line.

Exit codes: 0 done; 2 something given cannot be used; 3 no device; 70 the farm's or the program's
own fault; 75 interrupted, or the disk is full: the same command continues; 130 interrupted twice.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from tilefarm.errors import DiskError, SettingsError, TilefarmError
from tilefarm.printable import printable_lines
from tilefarm.system_errors import of_the_system

EXIT_INTERNAL: Final = 70
EXIT_INTERRUPTED: Final = 75
MOST_SECONDS: Final = 7 * 86_400.0
"""The longest wait that anybody can ask for; far longer ones overflow the system's clocks."""
_MOST_IN_USAGE: Final = 12
"""Options that a usage names one by one: about three lines of them."""


class Parser(argparse.ArgumentParser):
    """argparse whose complaints are errors of ours: one line, exit code 2.

    Each subcommand complains for itself, so a line points to the help of what was typed, and is
    found in the parsed arguments as `prog`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.set_defaults(prog=self.prog)

    def parse_known_args(  # type: ignore[override]  # the base class has overloads for its types
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        known, strange = super().parse_known_args(args, namespace)
        if strange:
            self.error(f"unrecognized arguments: {' '.join(strange)}")
        return known, strange

    def error(self, message: str) -> NoReturn:
        raise SettingsError(message, f"`{self.prog} --help` lists what there is")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help whose usage is a line or two, and whose columns have room for every subcommand."""

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[Any],
        prefix: str | None = None,
    ) -> None:
        """Many options are `[options]` here: they are listed below, with what they mean."""
        given = list(actions)
        optional = [each for each in given if each.option_strings and not each.required]
        if len(optional) > _MOST_IN_USAGE:
            options = argparse.Action(["options"], "options", nargs=0)
            given = [options, *(each for each in given if each not in optional)]
            groups = ()
        super().add_usage(usage, given, groups, prefix)

    def add_argument(self, action: argparse.Action) -> None:
        """As argparse, which forgets that names of subcommands are indented."""
        super().add_argument(action)
        if action.nargs == argparse.PARSER and action.choices:
            longest = max(map(len, action.choices)) + 2 * self._indent_increment
            self._action_max_length = max(self._action_max_length, longest)


def whole_from(least: int, most: int | None = None) -> Callable[[str], int]:
    """The type of an option that is a whole number, at least and at most so large."""
    within = f"from {least} on" if most is None else f"from {least} to {most}"

    def whole(text: str) -> int:
        with contextlib.suppress(ValueError):
            number = int(text)
            if number >= least and (most is None or number <= most):
                return number
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number {within}")

    return whole


def guarded(
    where: Callable[[], str],
    body: Callable[[], int],
    *,
    out: Callable[[], Path | None] = lambda: None,
) -> int:
    """The exit code of a command; every failure is one line, and what to try, on stderr.

    Args:
        where: the command, as the user typed it, as far as it is known.
        body: does it, and gives its exit code.
        out: the folder that it writes to, if it has come to know one.
    """
    if sys.stdout is None:  # closed by who started us
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # names of files need not be text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = body()
        sys.stdout.flush()
        return code
    except TilefarmError as error:
        return _failed(where(), error)
    except KeyboardInterrupt as interruption:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # an impatient second one while ending
        _complain(": ".join([where(), "interrupted", *interruption.args]))
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # whoever read our output has gone, and half a run is not a run
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0 if out() is None else EXIT_INTERRUPTED
    except Exception as bug:
        told = of_the_system(bug, folder=out()) if isinstance(bug, OSError) else None
        return _failed(where(), told) if told is not None else _told_bug(where(), bug, out())


def leave(code: int) -> NoReturn:
    """Ends the process; a late interruption must not change the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def _failed(where: str, error: TilefarmError) -> int:
    """What a command that failed says; its exit code."""
    if isinstance(error, DiskError):
        with contextlib.suppress(OSError, ValueError):  # what stdout still holds cannot be written
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    hint = error.hint or f"`{where} --help` says what it takes"
    _complain(f"{where}: {error.what}\n  try: {hint}")
    return error.exit_code


def _told_bug(where: str, bug: Exception, folder: Path | None) -> int:
    """What is said of a fault of ours, whose traceback goes to a file; the exit code."""
    reason = str(bug).partition("\n")[0]
    log = _write_log(folder)
    if log is not None:
        hint = f"read {log}, and report it"
    else:
        last = traceback.extract_tb(bug.__traceback__)[-1]
        hint = (
            f"set TMPDIR to a folder that can be written, for a log; it was in line {last.lineno}"
            f" of {last.filename}"
        )
    _complain(f"{where}: internal error: {type(bug).__name__}: {reason}\n  try: {hint}")
    return EXIT_INTERNAL


def _complain(text: str) -> None:
    """Say it on stderr, if there is one that takes it: the exit code says the rest."""
    with contextlib.suppress(OSError, ValueError):
        print(printable_lines(text), file=sys.stderr, flush=True)


def _write_log(folder: Path | None) -> Path | None:
    """The traceback in a file: in the output folder, else a temporary one; None: nowhere."""
    for place in (folder, None):
        try:
            with tempfile.NamedTemporaryFile(
                "w",
                prefix="tilefarm-error-",
                suffix=".log",
                dir=place,
                delete=False,
                encoding="utf-8",
                errors="backslashreplace",
            ) as log:
                traceback.print_exc(file=log)
            return Path(log.name)
        except OSError:
            continue
    return None
