"""`tilefarm` whose device is wrong for as long as the file LIES is there.

Every call takes seven cycles and a micro-op more than it does, the known kernel's as well: what
such a device measures is plausible, and its known kernel alone knows better.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from tilefarm.digest import Digest
from tilefarm.measurement import Counters, Measurement, RunFailure, RunJob

from device_server.runner.runner import Runner
from driver import cli

LIE_CYCLES: Final = 7


def lie(told: Counters) -> Counters:
    """What such a device says instead."""
    return replace(told, cycles=told.cycles + LIE_CYCLES, gemm_uops=told.gemm_uops + 1)


def _lying(run: Callable[..., Measurement | RunFailure], lies: Path) -> Callable[..., object]:
    def told(
        runner: Runner, job: RunJob, blob: Callable[[Digest], Path]
    ) -> Measurement | RunFailure:
        outcome = run(runner, job, blob)
        if not isinstance(outcome, Measurement) or not lies.exists():
            return outcome
        cycles = tuple(cycles + LIE_CYCLES for cycles in outcome.sample_cycles)
        return replace(outcome, counters=lie(outcome.counted), sample_cycles=cycles)

    return told


if __name__ == "__main__":
    setattr(Runner, "run", _lying(Runner.run, Path(os.environ["LIES"])))  # noqa: B010
    sys.exit(cli.main())
