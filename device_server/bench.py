"""Runs jobs, one at a time, on the runner of one device: verify, pin, run, keep the outputs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from tilefarm import wire
from tilefarm.calls import RunReply
from tilefarm.clock import Clock
from tilefarm.digest import Digest
from tilefarm.errors import CapacityError, DeviceLostError, ProtocolError
from tilefarm.log import Log
from tilefarm.measurement import Measurement, Role, RunFailure, RunJob, Status

from device_server import elf
from device_server.store import BlobStore

_MAX_TIMEOUT_SECONDS: Final = 3600.0
_REMEMBERED_VERDICTS: Final = 4096


class KernelRunner(Protocol):
    """What executes a job on the device, in whatever child it likes.

    `run` gets verified artifacts only, and returns how the job ended; it blocks. It raises only
    when the runner itself is broken.
    """

    @property
    def sandbox(self) -> str: ...

    @property
    def runtime_id(self) -> str: ...

    def run(self, job: RunJob, blob: Callable[[Digest], Path]) -> Measurement | RunFailure: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSettings:
    """What a bench knows about its device.

    `grace_seconds` is what a run may take beyond its kernel's time (start a child, load, compare)
    before the device counts as hung.
    """

    device: str
    machine: elf.Machine
    grace_seconds: float = 20.0


class Bench:
    """Runs one job at a time. Lives in one event loop; the runner in one thread beside it."""

    def __init__(
        self,
        runner: KernelRunner,
        store: BlobStore,
        settings: BenchSettings,
        clock: Clock,
        log: Log,
    ) -> None:
        self._runner = runner
        self._store = store
        self._settings = settings
        self._clock = clock
        self._log = log
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="runner")
        self._verdicts: dict[Digest, str] = {}
        self._hung = False

    @property
    def hung(self) -> bool:
        """Whether a run did not come back; only a new process helps."""
        return self._hung

    def verdict(self, artifact: Digest) -> str:
        """Why an uploaded artifact may not be loaded; empty if it may.

        Raises:
            MissingBlobError: it is not here.
        """
        path = self._store.path(artifact)
        if artifact not in self._verdicts:
            if len(self._verdicts) >= _REMEMBERED_VERDICTS:
                self._verdicts.clear()
            reason = elf.rejection(path.read_bytes(), self._settings.machine)
            self._verdicts[artifact] = reason or ""
        return self._verdicts[artifact]

    async def run(self, job: RunJob, still_mine: Callable[[], None]) -> RunReply:
        """Waits for its turn, runs the job and keeps its outputs as blobs.

        Args:
            job: what to run; its blobs are here.
            still_mine: raises if the caller has lost the device while it waited.

        Raises:
            ProtocolError: the job contradicts itself or its blobs.
            MissingBlobError: one of its blobs is not here.
            DeviceLostError: the runner did not come back.
        """
        arrived = self._clock.seconds()
        with self._store.pinned(_blobs(job)):
            for fault in _faults(job, self._store.nbytes_of):
                raise ProtocolError(f"run {job.artifact.short}: {fault}")
            async with self._turn:
                still_mine()
                queue_seconds = self._clock.seconds() - arrived
                outcome = await self._outcome(job)
        reply = self._kept(outcome, queue_seconds)
        self._log_run(job, reply)
        return reply

    async def _outcome(self, job: RunJob) -> Measurement | RunFailure:
        if self._hung:
            raise DeviceLostError(f"device {self._settings.device} hangs")
        rejection = self.verdict(job.artifact)
        if rejection:
            return self._failure(job, Status.VERIFY_REJECTED, rejection)
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._thread, self._runner.run, job, self._store.path)
        try:
            async with asyncio.timeout(job.timeout_seconds + self._settings.grace_seconds):
                return await running
        except TimeoutError:
            self._hung = True
            self._log("hung", device=self._settings.device, artifact=job.artifact.short)
            raise DeviceLostError(f"device {self._settings.device} hangs") from None
        except Exception as error:
            # The runner promises outcomes; if it breaks, the job ends but the server lives on.
            self._log("runner_fault", device=self._settings.device, error=repr(error))
            return self._failure(job, Status.INFRA_ERROR, f"the runner failed: {error!r}")

    def _failure(self, job: RunJob, status: Status, why: str) -> RunFailure:
        return RunFailure(
            artifact=job.artifact, status=status, why=why, device=self._settings.device
        )

    def _kept(self, outcome: Measurement | RunFailure, queue_seconds: float) -> RunReply:
        """The reply, with what may be large left in the store."""
        if isinstance(outcome, RunFailure):
            return RunReply(outcome=outcome, queue_seconds=queue_seconds)
        try:
            outputs = tuple((name, self._store.put(content)) for name, content in outcome.outputs)
            events = outcome.timeline
            timeline = self._store.put(wire.timeline_to_bytes(events)) if events else None
        except CapacityError as error:
            failure = RunFailure(
                artifact=outcome.artifact,
                status=Status.INFRA_ERROR,
                why=f"no room for the outputs: {error.what}",
                device=self._settings.device,
            )
            return RunReply(outcome=failure, queue_seconds=queue_seconds)
        return RunReply(
            outcome=replace(outcome, outputs=(), timeline=()),
            outputs=outputs,
            timeline=timeline,
            queue_seconds=queue_seconds,
        )

    def _log_run(self, job: RunJob, reply: RunReply) -> None:
        outcome = reply.outcome
        failure = outcome if isinstance(outcome, RunFailure) else None
        self._log(
            "ran",
            device=self._settings.device,
            artifact=job.artifact.short,
            status=(failure.status if failure else Status.OK).value,
            seconds=outcome.run_seconds,
            queue_seconds=reply.queue_seconds,
            why=failure.why if failure else "",
        )

    def close(self) -> None:
        """Waits for a run in progress, unless it hangs; the runner stays its owner's."""
        self._thread.shutdown(wait=not self._hung, cancel_futures=True)


def _blobs(job: RunJob) -> tuple[Digest, ...]:
    contents = [buffer.content for buffer in job.buffers if buffer.content]
    return tuple(dict.fromkeys([job.artifact, *contents]))


def _faults(job: RunJob, nbytes_of: Callable[[Digest], int]) -> Iterator[str]:
    """What is wrong with a job, before anything runs."""
    if not 0 < job.timeout_seconds <= _MAX_TIMEOUT_SECONDS:
        yield f"a timeout of {job.timeout_seconds} s is not within 0..{_MAX_TIMEOUT_SECONDS} s"
    if job.samples < 1:
        yield "no samples"
    for buffer in job.buffers:
        needed = {Role.CONSTANT: buffer.nbytes, Role.INPUT: buffer.nbytes * job.samples}
        if buffer.role not in needed:
            continue
        if buffer.content is None:
            yield f"buffer {buffer.name} ({buffer.role.value}) has no content"
        elif nbytes_of(buffer.content) != needed[buffer.role]:
            yield (
                f"buffer {buffer.name} needs {needed[buffer.role]} bytes, but its content has"
                f" {nbytes_of(buffer.content)}"
            )
