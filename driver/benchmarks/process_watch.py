"""Memory and processor time of a process and of all below it, looked at now and then."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Final, Self

from tilefarm.closing import Closing
from tilefarm.threads import Breakage, start_thread

from driver.benchmarks.farm.usage import peak_nbytes, tree_seconds
from driver.processes import descendants

_SAMPLE_SECONDS: Final = 0.5


class ProcessWatch(Closing):
    """Watches while its context lasts.

    Attributes:
        together_nbytes: proportional memory of all processes together, at its highest.
        largest_nbytes: the most memory that one of them has held, what it shares included.
        processor_seconds: of all together, those that ended included.
    """

    def __init__(self, root: int) -> None:
        self.together_nbytes = 0
        self.largest_nbytes = 0
        self.processor_seconds = 0.0
        self._root = root
        self._ended = threading.Event()
        self._broken = Breakage()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = start_thread(self._watch, name="processes", broken=self._broken)
        return self

    def close(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self._broken.check()

    def _watch(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            pids = [self._root, *descendants(self._root)]
            together = sum(map(proportional_nbytes, pids))
            self.together_nbytes = max(self.together_nbytes, together)
            for pid in pids:
                with contextlib.suppress(OSError):  # It has just ended.
                    self.largest_nbytes = max(self.largest_nbytes, peak_nbytes(pid))
            self.processor_seconds = max(self.processor_seconds, tree_seconds([self._root]))


def proportional_nbytes(pid: int) -> int:
    """A process's memory, shared pages counted by their share; 0 when it is gone."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
