"""Child processes that say `ready …` and never outlive us."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tilefarm.errors import InfraError
from tilefarm.interpreter import python_command

_END_SECONDS: Final = 3.0
_LOG_TAIL: Final = 2


class Child:
    """One `tilefarm` command in a process of its own session, so that Ctrl-C does not reach it.

    It must be started from a thread that lives as long as it: the kernel ends it with that thread.

    Args:
        name: for messages.
        words: the command and its options.
        log: gets its stderr, appended.
    """

    def __init__(self, name: str, words: Sequence[str], log: Path) -> None:
        self.name = name
        self._log = log
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                python_command("-m", "driver.cli", *words, "--die-with-parent"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                text=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ready(self) -> str:
        """What it says once it serves: waits for its `ready …` line.

        Raises:
            InfraError: it ended before.
        """
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, rest = line.partition(" ")
            if word == "ready":
                return rest.strip()
        code = self._process.wait()
        raise InfraError(
            f"{self.name} ended with exit code {code}: {self.last_words()}", f"read {self._log}"
        )

    def terminate(self) -> None:
        """Ask it to end; does not wait."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def join(self) -> None:
        """Wait for its end for a while, then end it and whatever it started."""
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def kill(self) -> None:
        """End it and its session at once; fit for a signal handler."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def last_words(self) -> str:
        """The end of its log, in one line."""
        with contextlib.suppress(OSError):
            lines = self._log.read_text(errors="replace").strip().splitlines()
            return " / ".join(lines[-_LOG_TAIL:])
        return "no log"
