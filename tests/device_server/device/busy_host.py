"""Times of the known kernel on a stand-in for a board, whose host was busy: recorded, and played.

`PYTHONPATH=tests:. python -m tests.device_server.device.busy_host` records them anew in ten
minutes, on a host on which several processes want every core.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.measurement import Measurement, Precision, RunFailure, RunJob, Status, WallTime
from tilefarm.target import TARGETS

from device_server.device.known_kernel import KnownKernel
from device_server.device.self_test import known_kernel_for
from device_server.runner.runner import Runner
from device_server.tenancy import OWN, Tenancy
from device_server.vta.library.native import find_stand_in

Look: TypeAlias = dict[str, Any] | None
"""The fields of a wall time; None where the host was too busy to time anything."""

FILE: Final = Path(__file__).with_suffix(".json")
_PAUSES_SECONDS: Final = (0.0, 0.1, 0.4, 1.5)
_PROOF: Final = Precision(error=0.003, seconds=0.5)
_CHECK: Final = Precision(error=0.01, seconds=0.1)
"""As the canary looks: whoever changes it there records anew."""
_CHECKS: Final = 160


class Recorded:
    """A runner whose answers are right, and whose times are those that were recorded."""

    sandbox = runtime_id = "recorded"

    def __init__(self) -> None:
        document = json.loads(FILE.read_text())
        self._looks: Iterator[Look] = iter(document["proof"])
        self._checks: list[list[Look]] = document["checks"]
        self._throttled: list[Look] = document["throttled"]

    @property
    def checks(self) -> int:
        """How many there are."""
        return len(self._checks)

    def begin(self, check: int) -> None:
        """What follows is that check."""
        self._looks = iter(self._checks[check])

    def throttle(self) -> None:
        """What follows is a check of a board whose clock was turned down."""
        self._looks = iter(self._throttled)

    def run(
        self, job: RunJob, blob: Callable[[Digest], Path], tenancy: Tenancy = OWN
    ) -> Measurement | RunFailure:
        look = None if job.precision is None else next(self._looks)
        if look is None and job.precision is not None:
            return RunFailure(artifact=job.artifact, status=Status.INFRA_ERROR, why="too busy")
        return Measurement(
            artifact=job.artifact,
            device="board",
            counters=None,
            wall_time=None if look is None else WallTime(**look),
        )

    def close(self) -> None:
        """There is nothing to end."""


def _look(runner: Runner, known: KnownKernel, folder: Path, precision: Precision) -> Look:
    job = replace(known.job, precision=precision)
    outcome = runner.run(job, lambda digest: folder / digest.hex)
    if isinstance(outcome, RunFailure):
        return None
    assert outcome.wall_time is not None
    return {
        name: float(f"{value:.5g}") if isinstance(value, float) else value
        for name, value in asdict(outcome.wall_time).items()
    }


def _board(mhz: int) -> Runner:
    environment = {"TILEFARM_BOARD_MHZ": str(mhz)}
    return Runner(target=TARGETS["sim"], library=find_stand_in(), environment=environment)


def record() -> None:
    """Write the file anew."""
    known, clock = known_kernel_for(TARGETS["sim"]), SystemClock()

    def looks(board: Runner, precision: Precision) -> list[Look]:
        found = []
        for pause in _PAUSES_SECONDS:
            clock.sleep(pause)
            found.append(_look(board, known, folder, precision))
        return found

    with TemporaryDirectory() as scratch, _board(100) as board, _board(66) as slow:
        folder = Path(scratch)
        known.keep_in(folder)
        proof = looks(board, _PROOF)
        checks = [looks(board, _CHECK) for _ in range(_CHECKS)]
        throttled = looks(slow, _CHECK)
    lines = ",\n".join(json.dumps(check) for check in checks)
    FILE.write_text(
        f'{{"proof": {json.dumps(proof)},\n"throttled": {json.dumps(throttled)},\n'
        f'"checks": [\n{lines}\n]}}\n'
    )


if __name__ == "__main__":
    record()
