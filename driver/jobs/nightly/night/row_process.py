"""The process that measures a row: it does not outlive the night, and says why it ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Protocol

from tilefarm.documents import read_json
from tilefarm.system_errors import unwritable

from driver.atomic_write import write_atomically
from driver.farm.compiling.orphan_reaper import dying_with_its_thread
from driver.processes import kill_descendants

_GRACE_SECONDS: Final = 60.0
"""For a run that is asked to stop: it gives devices back, and keeps what it knows."""
_TAIL_NBYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEnd:
    """How a row's process ended.

    Attributes:
        code: its exit code; negative for the signal that has ended it.
        said: the last thing that it said, if it failed.
        is_stopped: the night has stopped it.
    """

    code: int
    said: str = ""
    is_stopped: bool = False


class RowRunner(Protocol):
    """Who runs the commands of rows; any number at a time, each in a thread of its own."""

    def run(self, command: Sequence[str], log: Path, seconds: float) -> RowEnd:
        """Run one to its end; after so many seconds it is stopped.

        Args:
            command: its words.
            log: gets what it prints; what it says of failures beside it, as `.err`.
            seconds: that it may take.

        Raises:
            OutputError: the log cannot be written.
        """
        ...

    def stop(self) -> None:
        """Stop all, and start no other one; for any thread, and for signal handlers."""
        ...


class RowProcesses:
    """Real ones."""

    def __init__(self) -> None:
        self._stopping = False
        self._live: set[subprocess.Popen[bytes]] = set()

    def run(self, command: Sequence[str], log: Path, seconds: float) -> RowEnd:
        """See `RowRunner.run`."""
        errors = log.with_suffix(".err")
        if self._stopping:
            return RowEnd(code=-signal.SIGTERM, is_stopped=True)
        try:
            with log.open("ab") as out, errors.open("wb") as err:
                process = self._started(command, out.fileno(), err.fileno())
        except OSError as error:
            raise unwritable(log, error) from None
        self._live.add(process)
        if self._stopping:  # It was begun while the others were stopped.
            _interrupt(process)
        try:
            code, is_late = _ended(process, seconds)
        finally:
            self._live.discard(process)
        return RowEnd(code=code, said=_last_words(errors), is_stopped=is_late or self._stopping)

    def stop(self) -> None:
        """See `RowRunner.stop`."""
        self._stopping = True
        for process in tuple(self._live):
            _interrupt(process)

    def _started(self, command: Sequence[str], out: int, err: int) -> subprocess.Popen[bytes]:
        """In a group of its own, so that Ctrl-C reaches it once, through us. It dies with this
        thread, which waits for it.
        """
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            process_group=0,
            preexec_fn=dying_with_its_thread(os.getpid()),
        )


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)  # SIGINT is ignored below `&` and `nohup`


def _ended(process: subprocess.Popen[bytes], seconds: float) -> tuple[int, bool]:
    """The exit code, and whether its time was over."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(seconds), False
    _interrupt(process)
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(_GRACE_SECONDS), True
    kill_descendants(process.pid)
    process.kill()
    return process.wait(), True


def _last_words(errors: Path) -> str:
    """The line of a command that has failed: `tilefarm tune: what`, without the command."""
    try:
        with errors.open("rb") as file:
            file.seek(max(0, errors.stat().st_size - _TAIL_NBYTES))
            lines = file.read().decode(errors="backslashreplace").splitlines()
    except OSError:
        return ""
    said = [line for line in lines if line.startswith("tilefarm tune: ")]
    others = [line.strip() for line in lines if line.strip()]
    return said[-1].partition(": ")[2] if said else (others[-1] if others else "")


def keep_end(folder: Path, end: RowEnd) -> None:
    """Note how the row's process ended.

    Raises:
        OutputError: the folder cannot be written.
    """
    write_atomically(folder / "ended.json", json.dumps(asdict(end)).encode())


def kept_end(folder: Path) -> RowEnd | None:
    """What `keep_end` noted; None if nothing is there."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return RowEnd(**read_json(folder / "ended.json"))
    return None
