"""Runs that crashed this device twice: refused from then on, until somebody readmits the device.

A kernel that takes its device down does so again, for everybody who asks. What is remembered is the
call (an artifact's entry with buffers of certain sizes), so who calls a good kernel wrongly keeps
nobody else from using it. A file keeps it over restarts of the server.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from tilefarm.clock import Clock
from tilefarm.digest import Digest
from tilefarm.measurement import Measurement, RunFailure, RunJob, Status
from tilefarm.rpc.tracker_calls import RefusedRun, RefusedRuns
from tilefarm.watch.log import Level, Log

from device_server.device.kept_file import KeptFile

CRASHES: Final = 2
"""So many, and a call is not tried again."""
MOST: Final = 256
"""Calls that are remembered; those whose last crash is longest ago are forgotten."""
LONGEST_WORDS: Final = 300
"""Characters of an entry, and of how it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashing:
    """A call that crashed: of which entry, how often, and how it ended the last time.

    `since` is the wall time of the crash that was one too many, or of the last one before it.
    """

    artifact: str
    entry: str
    crashes: int
    status: str
    why: str
    since: float


class QuarantinedRuns:
    """What crashed one device, in a file of its folder. Lives in one event loop.

    Args:
        file: its alone; one that cannot be read or written costs the memory, not the service.
        clock: dates crashes.
        device: the name to put into messages.
    """

    def __init__(self, file: Path, log: Log, clock: Clock, *, device: str) -> None:
        self._file = KeptFile(file, log, device=device, event="quarantine_not_kept")
        self._log = log
        self._clock = clock
        self._device = device
        self._calls = self._read()
        self._edition = int(bool(self._refused()))

    @property
    def edition(self) -> int:
        """Grows when other runs are refused, or crashed again; 0 if there was none in this life."""
        return self._edition

    @property
    def told(self) -> RefusedRuns:
        """What is refused, for who wants to know."""
        now = self._clock.wall_seconds()
        return RefusedRuns(
            edition=self._edition,
            runs=tuple(
                RefusedRun(
                    artifact=Digest(known.artifact),
                    entry=known.entry,
                    crashes=known.crashes,
                    status=known.status,
                    why=known.why,
                    refused_seconds=max(0.0, now - known.since),
                )
                for known in self._refused()
            ),
        )

    def refusal(self, job: RunJob) -> RunFailure | None:
        """How a run ends that is not begun: as its last crash did; None if it may begin.

        What is told of that crash may be the kernel's words, so they stand between quotes.
        """
        if not self._calls:
            return None
        known = self._calls.get(_call_of(job))
        if known is None or known.crashes < CRASHES:
            return None
        return RunFailure(
            artifact=job.artifact,
            status=Status(known.status),
            why=f"quarantined: it crashed device {self._device} {known.crashes} times, the last"
            f" time by {known.why!r}; `tilefarm devices --readmit {self._device}` forgets that",
            device=self._device,
        )

    def ended(self, job: RunJob, outcome: Measurement | RunFailure) -> None:
        """A run has ended, and the device is right."""
        if isinstance(outcome, RunFailure) and outcome.status is Status.RUN_CRASH:
            self._note(job, outcome.status, outcome.why)

    def hung(self, job: RunJob, why: str) -> None:
        """A run did not come back, and took the server with it."""
        self._note(job, Status.RUN_TIMEOUT, why)

    def forget(self) -> None:
        """Everything may run again."""
        if self._calls:
            self._edition += 1
            self._calls.clear()
            self._write()
            self._log("forgiven", device=self._device)

    def _note(self, job: RunJob, status: Status, why: str) -> None:
        call = _call_of(job)
        known = self._calls.pop(call, None)
        refused = known is not None and known.crashes >= CRASHES
        crashing = Crashing(
            artifact=job.artifact.hex,
            entry=job.entry[:LONGEST_WORDS],
            crashes=(known.crashes if known else 0) + 1,
            status=status.value,
            why=why[:LONGEST_WORDS],
            since=known.since if known and refused else self._clock.wall_seconds(),
        )
        self._calls[call] = crashing
        if crashing.crashes >= CRASHES or len(self._calls) > MOST:
            self._edition += 1
        if len(self._calls) > MOST:
            self._calls.popitem(last=False)
        self._write()
        if crashing.crashes == CRASHES:
            self._log(
                "quarantined",
                level=Level.WARNING,
                device=self._device,
                artifact=job.artifact.short,
                entry=job.entry,
                why=crashing.why,
            )

    def _refused(self) -> list[Crashing]:
        return [known for known in self._calls.values() if known.crashes >= CRASHES]

    def _read(self) -> OrderedDict[str, Crashing]:
        kept = self._file.read()
        if kept is None:
            return OrderedDict()
        rows, written = kept
        try:
            return OrderedDict((call, _crashing(row, written)) for call, row in rows.items())
        except (ValueError, TypeError, AttributeError) as error:
            self._file.fails(error)
            return OrderedDict()

    def _write(self) -> None:
        self._file.write({call: asdict(row) for call, row in self._calls.items()})


def _call_of(job: RunJob) -> str:
    """The same for runs that do the same to a device, whatever the data and however often."""
    sizes = [[buffer.role.value, buffer.nbytes] for buffer in job.buffers]
    return Digest.of_json([job.artifact.hex, job.entry, sizes]).hex


def _crashing(row: dict[str, Any], written: float) -> Crashing:
    """A row of a file that was `written` then; a ValueError or TypeError if it is none.

    Earlier servers did not say since when: it was not later than that.
    """
    found = Crashing(**{"since": written} | row)
    Status(found.status)
    Digest(found.artifact)
    return replace(found, crashes=int(found.crashes), since=float(found.since))
