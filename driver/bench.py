"""Measures tilefarm itself: whole runs of the demo in fresh processes, and their medians."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tilefarm.clock import Clock
from tilefarm.errors import InfraError

from driver.farm.children import descendants

_SAMPLE_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoFigures:
    """One run of the demo, or the medians of several.

    Attributes:
        total_seconds: of the process, from its start to its end.
        first_measured_seconds: from its start to the first measured kernel.
        trials_per_second: while searching.
        propose_seconds: per trial; so are compile, transfer and run. They overlap in wall time.
        speedup: cycles of the untuned schedules by those of the best, over the network.
        peak_nbytes: proportional memory of all processes together, at its highest.
        differing: images whose output on the device is not the reference's.
    """

    total_seconds: float
    first_measured_seconds: float
    trials_per_second: float
    propose_seconds: float
    compile_seconds: float
    transfer_seconds: float
    run_seconds: float
    default_cycles: float
    best_cycles: float
    speedup: float
    peak_nbytes: float
    differing: float


def measure_demo(words: Sequence[str], clock: Clock) -> DemoFigures:
    """One demo from nothing, in a process of its own.

    Args:
        words: more options of `tilefarm demo`.

    Raises:
        InfraError: it failed.
    """
    with tempfile.TemporaryDirectory(prefix="tilefarm-bench-") as folder:
        out = Path(folder) / "out"
        began = clock.seconds()
        process = subprocess.Popen(
            [sys.executable, "-m", "driver.cli", "demo", "--json", "--out", str(out), *words],
            stdout=subprocess.PIPE,
            text=True,
        )
        with _MemoryWatch(process.pid) as memory:
            stdout, _ = process.communicate()
        total = clock.seconds() - began
    if process.returncode:
        raise InfraError(f"the demo ended with exit code {process.returncode}")
    return _figures(json.loads(stdout.splitlines()[-1]), total, memory.peak_nbytes)


def medians(runs: Sequence[DemoFigures]) -> DemoFigures:
    """The median of every figure."""
    rows = [asdict(run) for run in runs]
    return DemoFigures(**{key: statistics.median(row[key] for row in rows) for key in rows[0]})


def _figures(summary: dict[str, Any], total_seconds: float, peak_nbytes: int) -> DemoFigures:
    trials = summary["trials_this_session"] or 1
    split = {key: seconds / trials for key, seconds in summary["split"].items()}
    return DemoFigures(
        total_seconds=total_seconds,
        first_measured_seconds=summary["first_measured_seconds"],
        trials_per_second=summary["trials_per_second"],
        **split,
        default_cycles=summary["default_cycles"],
        best_cycles=summary["best_cycles"],
        speedup=summary["speedup"],
        peak_nbytes=peak_nbytes,
        differing=summary["accuracy"]["differing"],
    )


class _MemoryWatch:
    """Looks at the proportional memory of a process and all below it, now and then."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak_nbytes = 0

    def __enter__(self) -> _MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            pids = [self._root, *descendants(self._root)]
            self.peak_nbytes = max(self.peak_nbytes, sum(map(_proportional_nbytes, pids)))


def _proportional_nbytes(pid: int) -> int:
    """A process's memory, shared pages counted by their share; 0 when it is gone."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
