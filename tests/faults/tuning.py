"""`tilefarm demo` or `tune` as a process on a farm of real processes, for tests that disturb it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kit.farm.real_farm import CLI, RealFarm
from tilefarm.trust.access import FarmRole

_END_SECONDS: Final = 100.0


class Tuning:
    """A driver that tunes, and what it says, line by line."""

    def __init__(self, command: Sequence[str], words: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            [*CLI, *command, "--json", "--devices", "1", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for(self, event: str, count: int = 1) -> dict[str, Any]:
        """Read on up to the `count`th event of a kind."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said: dict[str, Any] = json.loads(line)
            count -= said["event"] == event
            if not count:
                return said
        raise AssertionError(f"no {event}: {self.end()}")

    def end(self) -> tuple[int, str]:
        """Exit code and stderr, after what it said last was read."""
        _, errors = self.process.communicate(timeout=_END_SECONDS)
        return self.process.returncode, errors


@contextmanager
def tuning(
    farm: RealFarm,
    tracker: str,
    out: Path,
    trials: int,
    *words: str,
    command: Sequence[str] = ("demo",),
    compiling: Sequence[str] = ("--no-ray", "--workers", "1"),
) -> Iterator[Tuning]:
    """Tune with so many trials in all on one device; killed at the end if it still runs."""
    shown = ["--tracker", tracker, *farm.proof_of(FarmRole.SUBMIT, "ann"), "--out", str(out)]
    tuning = Tuning(command, [*shown, *compiling, "--trials", str(trials), *words])
    try:
        yield tuning
    finally:
        tuning.process.kill()
        tuning.process.communicate()
