"""Runs jobs, one at a time, on the runner of one device: verify, pin, run, keep the outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from typing import Final

from tilefarm.clock import Clock
from tilefarm.digest import Digest
from tilefarm.errors import CapacityError, DeviceLostError, InfraError, ProtocolError
from tilefarm.measurement import (
    DeviceClock,
    Measurement,
    Role,
    RunFailure,
    RunJob,
    Status,
)
from tilefarm.plural import plural
from tilefarm.rpc import wire
from tilefarm.rpc.device_calls import RunReply, Timeline
from tilefarm.rpc.timing import note_phases, phase
from tilefarm.watch.log import Level, Log

from device_server.device import elf
from device_server.device.health_monitor import HealthMonitor
from device_server.device.kernel_runner import KernelRunner
from device_server.device.offload import offloaded
from device_server.device.quarantined import QuarantinedRuns
from device_server.device.runner_thread import RunnerThread
from device_server.device.tenant_blobs import TenantBlobs
from device_server.tenancy import Tenancy

_MAX_RUN_SECONDS: Final = 3600.0
"""No run keeps others from the device for longer, whatever it asks for."""
_MAX_TIMING_SECONDS: Final = 600.0
"""The median of what was timed for ten minutes is as sure as it will be."""
MOST_CODE_NBYTES: Final = 64 << 20
"""Of one artifact, which is looked at in memory; the programs of whole networks have a few MiB."""
MOST_VERDICTS: Final = 4096
"""On artifacts, that are remembered; then all are forgotten, and looked at again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSettings:
    """What an executor knows about its device."""

    device: str
    machine: elf.Machine
    clock: DeviceClock


class Executor:
    """Runs one job at a time. Lives in one event loop.

    Args:
        thread: where the runner is called.
        watch: hears of every run, and says when none is worth anything.
        quarantined: what crashed the device too often to be run again.
    """

    def __init__(
        self,
        runner: KernelRunner,
        thread: RunnerThread,
        watch: HealthMonitor,
        settings: ExecutorSettings,
        clock: Clock,
        log: Log,
        quarantined: QuarantinedRuns,
    ) -> None:
        self._runner = runner
        self._thread = thread
        self._watch = watch
        self._quarantined = quarantined
        self._settings = settings
        self._clock = clock
        self._log = log
        self._verdicts: dict[Digest, str] = {}

    async def verdict(self, artifact: Digest, blobs: TenantBlobs) -> str:
        """Why an uploaded artifact may not be loaded; empty if it may.

        Raises:
            MissingBlobError: it is not here.
        """
        await blobs.verify([artifact])
        with blobs.pinned([artifact]):
            path, nbytes = blobs.path(artifact), blobs.nbytes_of(artifact)
            known = self._verdicts.get(artifact)
            if known is not None:
                return known
            if nbytes > MOST_CODE_NBYTES:
                return f"it has more than {plural(MOST_CODE_NBYTES, 'byte')}"
            rejection = await offloaded(nbytes, lambda: self._rejection(path.read_bytes()))
        self._remember(artifact, rejection)
        return rejection

    def judge(self, artifact: Digest, content: bytes) -> None:
        """Look at an artifact while its bytes are at hand; `verdict` tells what was found."""
        self._remember(artifact, self._rejection(content))

    def _rejection(self, content: bytes) -> str:
        return elf.rejection(content, self._settings.machine) or ""

    def _remember(self, artifact: Digest, rejection: str) -> None:
        if len(self._verdicts) >= MOST_VERDICTS:
            self._verdicts.clear()
        self._verdicts[artifact] = rejection

    async def run(
        self,
        job: RunJob,
        still_mine: Callable[[], object],
        tenancy: Tenancy,
        blobs: TenantBlobs,
    ) -> RunReply:
        """Waits for its turn, runs the job and keeps its outputs as blobs.

        One that asks for more time than a run may have gets what it may have.

        Args:
            job: what to run; its blobs are here.
            still_mine: raises if the caller has lost the device while it waited.
            tenancy: under which lease it is. When that ends, so does the run, in the queue or on
                the device, and nobody gets what it gave.
            blobs: what there is for its user.

        Raises:
            LeaseError: the lease has ended.
            ProtocolError: the job contradicts itself or its blobs.
            MissingBlobError: one of its blobs is not here.
            DeviceLostError: the runner did not come back, or the device is in trouble.
            SuspectError: the known kernel failed after the run.
        """
        arrived = self._clock.seconds()
        if job.timeout_seconds > _MAX_RUN_SECONDS:
            job = replace(job, timeout_seconds=_MAX_RUN_SECONDS)
        await blobs.verify(job.blobs)
        with ExitStack() as pins:
            pins.enter_context(blobs.pinned(job.blobs))
            for fault in _faults(job, blobs.nbytes_of):
                raise ProtocolError(f"run {job.artifact.short}: {fault}")
            async with AsyncExitStack() as owned:
                with phase("queue"):
                    await owned.enter_async_context(self._thread.turn_under(tenancy))
                still_mine()
                self._watch.require_well()
                queue_seconds = self._clock.seconds() - arrived
                if refusal := self._quarantined.refusal(job):
                    self._log_refusal(refusal, tenancy)
                    unchecked = self._watch.unchecked
                    return RunReply(
                        outcome=refusal, queue_seconds=queue_seconds, unchecked=unchecked
                    )
                with phase("run"):
                    outcome = await self._outcome(job, tenancy, blobs)
                    _note_runner(outcome)
                self._log_run(job, outcome, queue_seconds, tenancy)
                with phase("known kernel"):
                    await self._watch.after(outcome)
                tenancy.require()
                self._quarantined.ended(job, outcome)
                unchecked = self._watch.unchecked
                pins.close()  # What it gave may take the room of what it needed.
                # With the turn, so that the outputs of one run alone are in memory.
                reply = await self._kept(outcome, queue_seconds, blobs, unchecked)
                tenancy.require()
                return reply

    async def _outcome(
        self, job: RunJob, tenancy: Tenancy, blobs: TenantBlobs
    ) -> Measurement | RunFailure:
        rejection = await self.verdict(job.artifact, blobs)
        if rejection:
            return self._failure(job, Status.VERIFY_REJECTED, rejection)
        try:
            outcome = await self._thread.call(
                lambda: self._runner.run(job, blobs.path, tenancy),
                job.limit_seconds,
                what=f"a run of artifact {job.artifact.short}",
            )
            return self._by_its_clock(outcome)
        except DeviceLostError as error:
            self._quarantined.hung(job, error.what)
            raise
        except Exception as error:
            # The runner promises outcomes; if it breaks, the job ends but the server lives on.
            self._log(
                "runner_fault",
                level=Level.ERROR,
                device=self._settings.device,
                error=repr(error),
            )
            return self._failure(job, Status.INFRA_ERROR, f"the runner failed: {error!r}")

    def _by_its_clock(self, outcome: Measurement | RunFailure) -> Measurement | RunFailure:
        """Without the counters of a library that has them, but never counts anything."""
        if isinstance(outcome, RunFailure) or self._settings.clock is DeviceClock.CYCLES:
            return outcome
        profile = tuple(replace(call, cycles=None) for call in outcome.profile)
        return replace(outcome, counters=None, sample_cycles=(), profile=profile)

    def _failure(self, job: RunJob, status: Status, why: str) -> RunFailure:
        return RunFailure(
            artifact=job.artifact, status=status, why=why, device=self._settings.device
        )

    async def _kept(
        self,
        outcome: Measurement | RunFailure,
        queue_seconds: float,
        blobs: TenantBlobs,
        unchecked: int,
    ) -> RunReply:
        """The reply, with what may be large left in the store, for its user."""
        if isinstance(outcome, RunFailure):
            return RunReply(outcome=outcome, queue_seconds=queue_seconds, unchecked=unchecked)
        try:
            outputs = [(name, await blobs.keep(content)) for name, content in outcome.outputs]
            events = outcome.timeline
            timeline = await blobs.keep(wire.TIMELINE.encode(Timeline(events))) if events else None
        except InfraError as error:
            too_large = isinstance(error, CapacityError)
            failure = RunFailure(
                artifact=outcome.artifact,
                status=Status.RESOURCE_EXCEEDED if too_large else Status.INFRA_ERROR,
                why=f"no room for the outputs: {error.what}",
                device=self._settings.device,
            )
            return RunReply(outcome=failure, queue_seconds=queue_seconds, unchecked=unchecked)
        if outcome.outputs or events:
            outcome = replace(outcome, outputs=(), timeline=())
        return RunReply(
            outcome=outcome,
            outputs=tuple(outputs),
            timeline=timeline,
            queue_seconds=queue_seconds,
            unchecked=unchecked,
        )

    def _log_refusal(self, refusal: RunFailure, tenancy: Tenancy) -> None:
        self._log(
            "run_refused",
            level=Level.WARNING,
            device=self._settings.device,
            artifact=refusal.artifact.short,
            lease=tenancy.lease,
            fence=tenancy.fence,
            user=tenancy.user,
            why=refusal.why,
        )

    def _log_run(
        self,
        job: RunJob,
        outcome: Measurement | RunFailure,
        queue_seconds: float,
        tenancy: Tenancy,
    ) -> None:
        failure = outcome if isinstance(outcome, RunFailure) else None
        self._thread.counters.ran()
        self._log(
            "ran",
            device=self._settings.device,
            artifact=job.artifact.short,
            status=(failure.status if failure else Status.OK).value,
            seconds=outcome.run_seconds,
            queue_seconds=queue_seconds,
            lease=tenancy.lease,
            fence=tenancy.fence,
            user=tenancy.user,
            why=failure.why if failure else "",
        )


def _note_runner(outcome: Measurement | RunFailure) -> None:
    """What the runner did, for a caller who traces."""
    if isinstance(outcome, Measurement):
        note_phases("runner", ("load", outcome.load_seconds), ("run", outcome.run_seconds))
    else:
        note_phases("runner", (outcome.status.value, outcome.run_seconds))


def _faults(job: RunJob, nbytes_of: Callable[[Digest], int]) -> Iterator[str]:
    """What is wrong with a job, before anything runs."""
    if not job.timeout_seconds > 0:
        yield f"a timeout of {job.timeout_seconds} s is not above 0 s"
    if job.samples < 1:
        yield f"{job.samples} samples are fewer than 1"
    if job.precision is not None and job.precision.seconds > _MAX_TIMING_SECONDS:
        yield f"{job.precision.seconds} s of timing are over {_MAX_TIMING_SECONDS:g} s"
    for buffer in job.buffers:
        needed = {Role.CONSTANT: buffer.nbytes, Role.INPUT: buffer.nbytes * job.samples}
        if buffer.role not in needed:
            continue
        if buffer.content is None:
            yield f"buffer {buffer.name} ({buffer.role.value}) has no content"
        elif nbytes_of(buffer.content) != needed[buffer.role]:
            yield (
                f"buffer {buffer.name} needs {plural(needed[buffer.role], 'byte')}, but its content"
                f" has {nbytes_of(buffer.content)}"
            )
