"""One hook: a command of the board's owner, run without a shell and for so long at most."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tilefarm.errors import InfraError

SECONDS: Final = 60.0
_TAIL_LENGTH: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One command and the time that it may take."""

    name: str
    command: tuple[str, ...]
    seconds: float = SECONDS

    def run(self, words: Mapping[str, str] | None = None) -> str:
        """What it prints.

        Args:
            words: what stands in its arguments for a name in braces.

        Raises:
            InfraError: it cannot be run, fails, or takes too long; with the end of what it printed.
        """
        arguments = [_filled(argument, words or {}) for argument in self.command]
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise self._failure(f"cannot be run: {error.strerror}", "") from None
            try:
                code = process.wait(self.seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise self._failure(
                    f"takes longer than {self.seconds:g} s", _tail(output)
                ) from None
            if code != 0:
                raise self._failure(f"ends with {_ending(code)}", _tail(output))
            output.seek(0)
            return output.read().decode(errors="replace")

    def _failure(self, why: str, said: str) -> InfraError:
        return InfraError(
            f"the hook {self.name} ({self.command[0]}) {why}{f'; it says: {said}' if said else ''}",
            "run its command by hand",
        )


def _filled(argument: str, words: Mapping[str, str]) -> str:
    for name, word in words.items():
        argument = argument.replace(f"{{{name}}}", word)
    return argument


def _ending(code: int) -> str:
    return f"status {code}" if code > 0 else f"signal {-code}"


def _tail(output: Any) -> str:
    output.seek(0)
    return str(output.read().decode(errors="replace"))[-_TAIL_LENGTH:].strip()
