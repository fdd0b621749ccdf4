"""The fault matrix: what may happen to a farm, and how soon it must have dealt with it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

SLACK: Final = 3.0
"""A slow machine may take so many times as long as the bound."""

STALL_SECONDS: Final = 3.0
"""And a shared one may stand still for so long; the table says what was over its bound."""


def allowed_seconds(bound_seconds: float) -> float:
    """How long a step may take now until its test fails: more, the more share the processors."""
    share = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    return SLACK * share * bound_seconds + STALL_SECONDS


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One row of the matrix.

    Attributes:
        fault: what happens.
        seconds: until the farm must have dealt with it, on a machine that does nothing else; None
            if the row is about what happens only, not when.
    """

    fault: str
    seconds: float | None = None


ROWS: Final[dict[int, FaultRow]] = {
    1: FaultRow("device server killed while a kernel runs", 10.0),
    2: FaultRow("kernel crashes", 0.1),
    3: FaultRow("kernel never ends", 0.5),
    4: FaultRow("wrong result"),
    5: FaultRow("hung device", 15.0),
    6: FaultRow("tracker killed and started again", 10.0),
    7: FaultRow("network cut, then healed", 10.0),
    8: FaultRow("driver killed and started again", 5.0),
    9: FaultRow("compile worker killed", 1.1),
    10: FaultRow("Ray node lost"),
    11: FaultRow("disk full"),
    12: FaultRow("results sent twice"),
    13: FaultRow("late result of an old lease"),
    14: FaultRow("clocks that jump"),
    15: FaultRow("upload damaged or cut short"),
    16: FaultRow("other version, other configuration"),
    17: FaultRow("artifact for another machine"),
    18: FaultRow("kernel that takes memory, processes, files"),
    19: FaultRow("device starts anew under a run"),
    20: FaultRow("device slows down"),
    21: FaultRow("everybody asks the tracker at once", 1.0),
    22: FaultRow("Ctrl-C once, twice", 2.0),
    23: FaultRow("stale sockets, a second server at an address"),
    24: FaultRow("database locked or damaged"),
    25: FaultRow("lease that ends while its run goes on", 3.5),
}
"""By number; `test_row_NN_NAME.py` tests row NN."""


@dataclass(slots=True)
class Stopwatch:
    """What one test measured of its row's bound; fails the test that took far too long."""

    row: FaultRow
    measured: list[float] = field(default_factory=list)

    @contextmanager
    def running(self, less_seconds: float = 0.0) -> Iterator[None]:
        """Measures what it is put around, without `less_seconds` that the fault itself takes."""
        began = time.monotonic()
        yield
        self.took(time.monotonic() - began - less_seconds)

    def took(self, seconds: float) -> None:
        """Note a time that was measured otherwise."""
        self.measured.append(max(0.0, seconds))
        bound = self.row.seconds
        assert bound is None or seconds <= allowed_seconds(bound), (
            f"{self.row.fault}: dealt with after {seconds:.2f} s; the bound is {bound:g} s"
        )


def row_number(test_file: Path) -> int | None:
    """Which row a test file is about; None if about none."""
    words = test_file.stem.split("_")
    return int(words[2]) if words[:2] == ["test", "row"] else None
