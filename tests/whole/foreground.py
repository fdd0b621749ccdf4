"""`tilefarm` as a terminal's foreground job: its words, its lines, Ctrl-C and its descendants."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kit.living import lives

from driver.processes import descendants


@dataclass
class Command:
    """A `tilefarm` command in a session of its own, like a terminal's foreground job."""

    words: Sequence[str]
    seen: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "driver.cli", *self.words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def ctrl_c(self) -> None:
        """What the terminal does: a signal to the whole foreground group."""
        self.seen |= {*descendants(self.process.pid)}
        os.killpg(self.process.pid, signal.SIGINT)

    def kill(self) -> None:
        self.seen |= {*descendants(self.process.pid)}
        self.process.kill()

    def wait_for(self, event: str, count: int = 1) -> dict[str, Any]:
        """Read JSON lines up to the `count`th of that event."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            document: dict[str, Any] = json.loads(line)
            if document["event"] == event:
                count -= 1
                if count == 0:
                    return document
        raise AssertionError(f"no {event}: {self.process.communicate()[1]}")

    def end(self) -> tuple[int, str, str]:
        """Exit code, rest of stdout, stderr."""
        out, err = self.process.communicate(timeout=240)
        return self.process.returncode, out, err

    def survivors(self) -> set[int]:
        """Processes below it that still live, after they had a moment to end."""
        deadline = time.monotonic() + 60
        while (alive := set(filter(lives, self.seen))) and time.monotonic() < deadline:
            time.sleep(0.1)
        return alive


def demo(out: Path, *words: str) -> list[str]:
    return ["demo", "--json", "--out", str(out), "--seed", "1", *words]


def summary_of(stdout: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    assert document["event"] == "summary"
    return document
