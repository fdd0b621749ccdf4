"""`tilefarm` whose device is wrong while the file LIES is there, and slow while SLOW is.

Every call takes seven cycles and a micro-op more than it does, the known kernel's as well: what
such a device measures is plausible, and its known kernel alone knows better.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from tilefarm.digest import Digest
from tilefarm.measurement import Counters, Measurement, RunFailure, RunJob

from device_server.runner.runner import Runner
from device_server.tenancy import Tenancy
from driver import cli

LIE_CYCLES: Final = 7


def lie(told: Counters) -> Counters:
    """What such a device says instead."""
    return told.but(cycles=told.cycles + LIE_CYCLES, gemm_uops=told["gemm_uops"] + 1)


SLOW_SECONDS: Final = 0.5
"""More of each run: a hundred times as long as most of them."""


def _lying(
    run: Callable[..., Measurement | RunFailure], lies: Path, slow: Path
) -> Callable[..., object]:
    def told(
        runner: Runner, job: RunJob, blob: Callable[[Digest], Path], *tenancy: Tenancy
    ) -> Measurement | RunFailure:
        if slow.exists():
            time.sleep(SLOW_SECONDS)
        outcome = run(runner, job, blob, *tenancy)
        if not isinstance(outcome, Measurement) or not lies.exists():
            return outcome
        cycles = tuple(cycles + LIE_CYCLES for cycles in outcome.sample_cycles)
        return replace(outcome, counters=lie(outcome.counted), sample_cycles=cycles)

    return told


if __name__ == "__main__":
    lies, slow = (Path(os.environ[name]) for name in ("LIES", "SLOW"))
    setattr(Runner, "run", _lying(Runner.run, lies, slow))  # noqa: B010
    sys.exit(cli.main())
