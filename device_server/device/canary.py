"""The canary: the known kernel, run before a device serves and ever again while it does.

A device that is not right at the start never serves; one that is wrong later, or takes another
time, is found out after few kernels, and so is what it measured meanwhile.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tilefarm.clock import Clock
from tilefarm.digest import Digest
from tilefarm.errors import InfraError, SelfTestError, TilefarmError
from tilefarm.measurement import (
    DeviceClock,
    Measurement,
    Precision,
    RunFailure,
    Status,
    WallTime,
)

from device_server.device.clock_history import ClockHistory
from device_server.device.kernel_runner import KernelRunner
from device_server.device.known_kernel import KnownKernel

_PROOF: Final = Precision(error=0.003, seconds=0.5)
"""Of the known kernel by a host's clock at the self-test: all later times are held to it."""
_CHECK: Final = Precision(error=0.01, seconds=0.1)
"""Of the later ones, every few dozen runs."""
_PAUSES_SECONDS: Final = (0.0, 0.1, 0.4, 1.5)
"""Before each look at a time by the host's clock, the best of which counts. What slows a host down
for a moment is no drift: a neighbour's spell lasts some tens of milliseconds, in which the kernel
takes a tenth more time, and comes again within a second or two."""
_LASTS_SECONDS: Final = 8.0
"""What is slower for so long, where nothing keeps a pace, is so for good."""
_HINT: Final = "see that --target, --runtime and the bitstream are for one another"
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_ROOM: Final = "free some space on its disk"
_SPARE: Final = "see that its machine has memory, processes and files to spare"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What the known kernel gave on a device that is right.

    Attributes:
        runtime: identity of the VTA library.
        answer: digest of the outputs.
        cycles: of one call; None where the library does not count.
        wall_time: of one call, where it does not.
    """

    runtime: str
    answer: Digest
    cycles: int | None
    wall_time: WallTime | None = None

    @property
    def digest(self) -> Digest:
        """Equal for devices whose measurements can be compared."""
        return Digest.of_json([self.runtime, self.answer.hex, self.cycles or 0])

    @property
    def clock(self) -> DeviceClock:
        """What tells how long a kernel takes there."""
        return DeviceClock.SECONDS if self.cycles is None else DeviceClock.CYCLES

    def __str__(self) -> str:
        took = f"{self.cycles} cycles"
        if self.wall_time is not None:
            took = f"{self.wall_time.median_seconds * 1e6:.1f} us by the host's clock"
        return f"{self.digest.short} {took}"


@dataclass(frozen=True, slots=True)
class Wrong:
    """The device gave another answer than it should, or none."""

    why: str


@dataclass(frozen=True, slots=True)
class Drift:
    """The answer is right, but came in another time than before."""

    why: str


@dataclass(frozen=True, slots=True)
class NotMade:
    """The known kernel could not be run, which says nothing about the device's answers.

    Attributes:
        why: what kept it from running.
        remedy: what to do about that.
    """

    why: str
    remedy: str


class Canary:
    """The known kernel on one device. Blocks while it runs.

    Args:
        known: what to run and what must come out.
        runner: of the device.
        folder: where the known kernel's blobs are kept; its alone.
        clock: what pauses between looks at a time are taken from.
        device: the name to put into messages.

    Raises:
        InfraError: the folder cannot be written.
    """

    def __init__(
        self, known: KnownKernel, runner: KernelRunner, folder: Path, *, clock: Clock, device: str
    ) -> None:
        self._known = known
        self._runner = runner
        self._folder = folder
        self._clock = clock
        self._device = device
        self._proof: Proof | None = None
        self._history: ClockHistory | None = None
        self._slower_since: float | None = None
        try:
            known.keep_in(folder)
        except OSError as error:
            raise InfraError(
                f"{folder}: cannot keep the known kernel: {error.strerror}",
                "free some space, or use another --folder",
            ) from None

    @property
    def timeout_seconds(self) -> float:
        """What one check may take, its children's starts aside."""
        return sum(_PAUSES_SECONDS) + len(_PAUSES_SECONDS) * self._known.job.timeout_seconds

    @property
    def proof(self) -> Proof:
        """What the known kernel gives on the device; its time is the shortest at today's pace."""
        assert self._proof is not None, "a device proves itself first"
        if self._history is None:
            return self._proof
        return replace(self._proof, wall_time=self._history.shortest)

    def prove(self) -> Proof:
        """The self-test: right answer, right counters, and on simulators the known cycles.

        A library that counts no cycles is timed by the host's clock.

        Raises:
            SelfTestError: what differs.
            InfraError: the known kernel could not be run, or not be timed.
        """
        proof = self._proven(self._run())
        known = self._known.cycles
        if proof.cycles is not None and known is not None and proof.cycles != known:
            raise SelfTestError(
                f"device {self._device} fails its self-test: the known kernel takes {proof.cycles}"
                f" cycles, not {known}",
                "build the runtime library anew; it may be of another version",
            )
        if proof.cycles is None:
            times = []
            for pause in _PAUSES_SECONDS:
                self._clock.sleep(pause)
                times.append(_timed(self._proven(self._run(_PROOF))))
            best = min(times, key=lambda time: time.minimum_seconds)
            proof = replace(proof, wall_time=best)
            self._history = ClockHistory(best)
        self._proof = proof
        return proof

    def check(self) -> Wrong | Drift | NotMade | None:
        """Whether the device is still as it was at the self-test; None if so."""
        proof = self.proof
        if self._history is not None:
            return self._check_time(self._history)
        found = self._run()
        if not isinstance(found, Proof):
            return found
        if found.cycles is None or proof.cycles is None:
            return Wrong("the known kernel counts no cycles any more")
        return self._drift(found.cycles / proof.cycles - 1)

    def _check_time(self, history: ClockHistory) -> Wrong | Drift | NotMade | None:
        """As `check`, by the clock. A host too busy to time anything says nothing about a board.

        Where nothing keeps a pace, one that has lasted for a while is the device's now.
        """
        times = []
        for pause in _PAUSES_SECONDS:
            self._clock.sleep(pause)
            found = self._run(_CHECK)
            if isinstance(found, NotMade):
                answer = self._run()
                return None if isinstance(answer, Proof) else answer
            if isinstance(found, Wrong):
                return found
            times.append(_timed(found))
            if not history.change(times[-1]):
                history.keep(times[-1])
                self._slower_since = None
                return None
        best = min(times, key=lambda time: time.minimum_seconds)
        change = history.change(best)
        drift = self._drift(change)
        lasts = change > 0 and self._has_lasted()
        if change < 0 or lasts:
            history.begin_anew(best)
            self._slower_since = None
        return None if lasts else drift

    def _has_lasted(self) -> bool:
        """Whether the device is slower for good; it is slower now."""
        now = self._clock.seconds()
        if self._slower_since is None:
            self._slower_since = now
        return not self._known.keeps_pace and now - self._slower_since >= _LASTS_SECONDS

    def _drift(self, change: float) -> Drift | None:
        if not change:
            return None
        why = "" if self._known.keeps_pace or change < 0 else "its machine is busy, or hot: "
        return Drift(
            f"{why}the known kernel takes {abs(change):.1%} {'more' if change > 0 else 'less'} time"
            f" than before ({self.proof})"
        )

    def _proven(self, found: Proof | Wrong | NotMade) -> Proof:
        if isinstance(found, NotMade):
            raise InfraError(
                f"device {self._device} cannot make its self-test: {found.why}", found.remedy
            )
        if isinstance(found, Wrong):
            raise SelfTestError(f"device {self._device} fails its self-test: {found.why}", _HINT)
        return found

    def _run(self, precision: Precision | None = None) -> Proof | Wrong | NotMade:
        job = replace(self._known.job, precision=precision)
        try:
            outcome = self._runner.run(job, lambda digest: self._folder / digest.hex)
        except InfraError as error:
            return NotMade(error.what, error.hint or _SPARE)
        except TilefarmError as error:
            return Wrong(error.what)
        except OSError as error:
            remedy = _ROOM if error.errno in _NO_ROOM else _SPARE
            return NotMade(f"the runner failed: {error.strerror or error}", remedy)
        if isinstance(outcome, RunFailure):
            why = f"the known kernel ends as {outcome.status.value}: {outcome.why}"
            unmade = outcome.status.is_farm_fault or outcome.status is Status.RESOURCE_EXCEEDED
            return NotMade(why, _SPARE) if unmade else Wrong(why)
        return self._odd(outcome) or self._proof_of(outcome)

    def _odd(self, measurement: Measurement) -> Wrong | None:
        """What the counters say that cannot be, where the library counts."""
        cycles = measurement.cycles
        if not cycles:
            return None
        found, expected = measurement.counted, self._known.counters
        odd = [
            f"{name} {found[name]}, not {value}"
            for name, value in expected.counts
            if found[name] != value
        ]
        least = self._known.counters["gemm_uops"] + self._known.counters["alu_uops"]
        if cycles < least:
            odd.append(f"cycles {cycles} for {least} micro-ops")
        if set(measurement.sample_cycles) - {cycles}:
            odd.append(f"cycles {measurement.sample_cycles} of calls that are the same")
        return Wrong(f"the known kernel counts {'; '.join(odd)}") if odd else None

    def _proof_of(self, measurement: Measurement) -> Proof:
        (answer,) = (b.expected for b in self._known.job.buffers if b.expected is not None)
        return Proof(
            runtime=self._runner.runtime_id,
            answer=answer,
            cycles=measurement.cycles or None,
            wall_time=measurement.wall_time,
        )


def _timed(proof: Proof) -> WallTime:
    assert proof.wall_time is not None, "a runner times what it is asked to time"
    return proof.wall_time
