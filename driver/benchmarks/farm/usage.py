"""What processes and threads have used, as Linux counts it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Self

from tilefarm.closing import Closing
from tilefarm.process_state import process_state
from tilefarm.threads import Breakage, start_thread

from driver.processes import descendants

_SAMPLE_SECONDS: Final = 2.0
_OWN: Final = "watch"


def processor_seconds(pid: int) -> float:
    """What a living process has computed so far, on all its threads."""
    return process_state(pid).seconds


def tree_seconds(roots: Iterable[int]) -> float:
    """What living processes and all below them have computed so far, with those that ended."""
    seconds = 0.0
    for root in roots:
        for pid in (root, *descendants(root)):
            with contextlib.suppress(OSError):  # It has just ended: its parent has what it used.
                state = process_state(pid)
                seconds += state.seconds + state.children_seconds
    return seconds


def resident_nbytes(pid: int) -> int:
    """Memory that a living process holds now."""
    return _status_nbytes(pid, "VmRSS")


def peak_nbytes(pid: int) -> int:
    """The most memory that a living process has held."""
    return _status_nbytes(pid, "VmHWM")


def _status_nbytes(pid: int, key: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    return 0


class ThreadWatch(Closing):
    """What the threads of this process compute while the context lasts, by kind.

    It counts from the last `begin`, or else from the context's begin.

    A thread's kind is its name up to the first dash; threads that Python does not know are "gRPC".
    They are looked at now and then, so a thread's last two seconds may be missing. What the
    watching itself takes does not count.
    """

    def __init__(self) -> None:
        self._kinds: dict[int, str] = {}
        self._seconds: dict[int, float] = {}
        self._before: dict[int, float] = {}
        self._process_before = 0.0
        self._process_seconds = 0.0
        self._ended = threading.Event()
        self._broken = Breakage()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.begin()
        self._thread = start_thread(self._watch, name=_OWN, broken=self._broken)
        return self

    def begin(self) -> None:
        """Forget what was computed until now."""
        self._look()
        self._before = dict(self._seconds)
        self._process_before = processor_seconds(os.getpid())

    def close(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self._broken.check()
        self._look()
        self._process_seconds = processor_seconds(os.getpid()) - self._process_before

    @property
    def process_seconds(self) -> float:
        """All threads together, once the context is over."""
        return sum(self.by_kind().values())

    def by_kind(self) -> Mapping[str, float]:
        """Processor seconds of each kind of thread."""
        found: defaultdict[str, float] = defaultdict(float)
        for number, seconds in self._seconds.items():
            found[self._kinds[number]] += seconds - self._before.get(number, 0.0)
        found["gRPC"] += max(0.0, self._process_seconds - sum(found.values()))
        found.pop(_OWN, None)
        return found

    def _watch(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            self._look()

    def _look(self) -> None:
        for thread in threading.enumerate():
            number = thread.native_id
            if number is None:
                continue
            try:
                text = Path(f"/proc/self/task/{number}/schedstat").read_text()
            except OSError:
                continue  # It has just ended.
            self._kinds[number] = thread.name.partition("-")[0]
            self._seconds[number] = int(text.split()[0]) / 1e9
