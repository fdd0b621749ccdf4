"""Ctrl-C: once ends the run in order, twice ends it now; no process is left either way."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Final, Self

from tilefarm.clock import Clock, SystemClock

from driver.processes import kill_descendants
from driver.stop_token import StopToken

EXIT_TWICE: Final = 130
_ONE_PRESS_SECONDS: Final = 0.2
_SHOW_CURSOR: Final = "\x1b[?25h"


class Interrupted(KeyboardInterrupt):
    """The first Ctrl-C, outside of a search; the run can be continued."""


class Interrupts:
    """Handles SIGINT, SIGTERM and SIGHUP of the main thread while it is entered.

    The first one stops the search, or raises `Interrupted` when none runs. The second one kills
    every process below this one, removes `scratch`, and ends with exit code 130. What comes right
    behind the first is the same press: `timeout -s INT` signals a process and then its group.

    Args:
        stop: what ends a search.
        scratch: the run's temporary folder.
        clock: tells one press from two.
    """

    def __init__(self, stop: StopToken, scratch: Path, clock: Clock | None = None) -> None:
        self._stop = stop
        self._scratch = scratch
        self._clock = clock or SystemClock()
        self._first_seconds: float | None = None
        self._old: dict[int, Any] = {}
        self._closing = False

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue  # nohup: outlive the terminal
            self._old[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, old in self._old.items():
            signal.signal(number, old)

    def closing(self) -> None:
        """From now on the first Ctrl-C changes nothing: the run is ending already."""
        self._closing = True

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        now = self._clock.seconds()
        if self._first_seconds is not None and now - self._first_seconds < _ONE_PRESS_SECONDS:
            return
        if self._stop.is_requested:
            self._end_now()
        self._first_seconds = now
        if not self._stop.request_stop() and not self._closing:
            raise Interrupted("nothing is lost; the same command continues")

    def _end_now(self) -> None:
        kill_descendants(os.getpid())
        shutil.rmtree(self._scratch, ignore_errors=True)
        if sys.stdout.isatty():
            os.write(1, _SHOW_CURSOR.encode())
        os.write(2, b"\ntilefarm: interrupted twice: ended at once; the same command continues\n")
        os._exit(EXIT_TWICE)
