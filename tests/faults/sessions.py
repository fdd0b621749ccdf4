"""A driver that tunes for as long as it is let: session after session, each a process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tilefarm.process_state import process_state

from driver.processes import descendants, kill_descendants

SURVIVED: Final = frozenset({0, -9, 3, 70, 75})
"""How a session may end: done, killed, or by a fault of the farm that it tells."""

_FAULTS: Final = frozenset({3, 70, 75})
_PARTICULAR: Final = (
    (re.compile(r"^tilefarm \w+: "), ""),
    (re.compile(r"\b(lease|epoch)-[0-9a-f]+"), r"\1-ID"),
    (re.compile(r"\bsim\d\b"), "DEVICE"),
    (re.compile(r"\b[0-9a-f]{12,}\b"), "DIGEST"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"\d+(\.\d+)?"), "N"),
)
"""What makes two of one kind differ, and what stands for it."""
_STEP_TRIALS: Final = 40
_PAUSE_SECONDS: Final = 0.2
_PAGE_NBYTES: Final = os.sysconf("SC_PAGE_SIZE")
_ROOT: Final = Path(__file__).parents[2]


@dataclass(slots=True)
class Session:
    """One process of the driver, and what it said.

    Attributes:
        numbers: of the trials that it told.
        summary: its last word, if it came so far.
        silent_seconds: the longest time without a word, by the share of the processors it had.
        grown_nbytes: of resident memory, from its first trial on.
        below: processes that it had, each with when it began: numbers are used again.
    """

    trials: int
    began: float
    numbers: list[int] = field(default_factory=list)
    summary: dict[str, Any] | None = None
    code: int | None = None
    errors: str = ""
    silent_seconds: float = 0.0
    grown_nbytes: int = 0
    below: set[tuple[int, int]] = field(default_factory=set)


def reasons(sessions: Iterable[Session]) -> Counter[str]:
    """Why sessions gave up, with how many did: each kind once, whatever the device or the lease."""
    return Counter(f"{s.code}: {_kind(s.errors)}" for s in sessions if s.code in _FAULTS)


def _kind(errors: str) -> str:
    """The line that says what was wrong, without what it was about in particular."""
    said = [line for line in errors.splitlines() if line.strip()]
    text = next((line for line in said if line.startswith("tilefarm ")), said[0] if said else "-")
    for pattern, instead in _PARTICULAR:
        text = pattern.sub(instead, text)
    return text


class Sessions:
    """Runs one session after the other in a thread, until told to end; each wants more trials.

    Args:
        words: the command, without `--trials`.
        environment: on top of ours.
    """

    def __init__(self, words: Sequence[str], environment: dict[str, str]) -> None:
        self._command = [sys.executable, "-m", "kit.children.proxied_tune", *words]
        path = os.pathsep.join([str(_ROOT / "tests"), str(_ROOT)])
        self._environment = {**os.environ, "PYTHONPATH": path, **environment}
        self._ending = threading.Event()
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._main, name="sessions")
        self._process: subprocess.Popen[str] | None = None
        self.all: list[Session] = []

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The driver that runs now."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def kill(self) -> None:
        """What `kill -9` does to the driver that runs now."""
        if self.pid is not None and self._process is not None:
            self._process.kill()

    def end(self, seconds: float, meanwhile: Callable[[], None]) -> None:
        """Let the session that runs come to its end; `meanwhile` is done again and again."""
        self._ending.set()
        until = time.monotonic() + seconds
        while self._thread.is_alive() and time.monotonic() < until:
            meanwhile()
            self._thread.join(_PAUSE_SECONDS)
        if self._thread.is_alive():
            self._given_up.set()
            if self.pid is not None:
                kill_descendants(self.pid)
            self.kill()
            self._thread.join()
            raise AssertionError(f"the last session did not end within {seconds} s")

    def _main(self) -> None:
        trials = _STEP_TRIALS
        while True:
            session = self._run(trials)
            if session.code not in SURVIVED or self._given_up.is_set():
                return
            if session.code == 0:
                if self._ending.is_set():
                    return
                trials += _STEP_TRIALS
            time.sleep(_PAUSE_SECONDS)

    def _run(self, trials: int) -> Session:
        session = Session(trials, time.time())
        self.all.append(session)
        with subprocess.Popen(
            [*self._command, "--trials", str(trials)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=self._environment,
        ) as process:
            self._process = process
            errors = threading.Thread(target=self._read_errors, args=(process, session))
            errors.start()
            self._listen(process, session)
            errors.join()
        session.code = process.returncode
        return session

    @staticmethod
    def _read_errors(process: subprocess.Popen[str], session: Session) -> None:
        assert process.stderr is not None
        session.errors = process.stderr.read()

    @staticmethod
    def _listen(process: subprocess.Popen[str], session: Session) -> None:
        assert process.stdout is not None
        heard = time.monotonic()
        first_nbytes = 0
        for line in process.stdout:
            now = time.monotonic()
            share = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
            session.silent_seconds = max(session.silent_seconds, (now - heard) / share)
            heard = now
            try:
                event = json.loads(line)
            except ValueError:
                assert not line.endswith("\n"), f"not an event: {line}"
                return  # cut off by a kill
            if event["event"] == "summary":
                session.summary = event
            if event["event"] == "trial":
                session.numbers.append(event["number"])
                first_nbytes = first_nbytes or resident_nbytes(process.pid)
                grown = resident_nbytes(process.pid) - first_nbytes
                session.grown_nbytes = max(session.grown_nbytes, grown)
                session.below |= {(pid, began_at(pid)) for pid in descendants(process.pid)}


def began_at(pid: int) -> int:
    """When a process began, in clock ticks of the machine; 0 if it is no more."""
    try:
        return process_state(pid).began_ticks
    except OSError:
        return 0


def resident_nbytes(pid: int) -> int:
    """The memory of a process; 0 if it is no more."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_NBYTES
    except OSError:
        return 0
