"""Runs compiled kernels in a sandboxed child, and turns whatever happens there into a record."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tilefarm.clock import Clock, SystemClock
from tilefarm.closing import Closing
from tilefarm.digest import Digest
from tilefarm.errors import InfraError
from tilefarm.measurement import Measurement, Role, RunFailure, RunJob, Status
from tilefarm.plural import plural
from tilefarm.target import Target

from device_server.library.native import find_executable, find_library
from device_server.runner.child import RunnerChild
from device_server.runner.children import Children, LibraryError
from device_server.runner.connection import ChildGone, ChildSilent
from device_server.runner.frames import (
    Done,
    Failed,
    Fault,
    Ready,
    Reply,
    Request,
    load_request,
    run_request,
)
from device_server.runner.verdicts import Blob, Problem, death, describe_mismatch, refusal
from device_server.runner.zygote import RunnerLimits
from device_server.tenancy import OWN, Tenancy

__all__ = ["Runner", "RunnerLimits"]


class Runner(Closing):
    """One accelerator to run on. Keeps at most one child; a bad kernel costs that child only.

    A child serves one artifact of one tenancy, however often it is run: once the artifact is loaded
    the child can open nothing more. It dies when the tenancy ends, also while it does nothing. Not
    thread safe: one job at a time, as on a board.

    Args:
        target: the accelerator; a board's own library ignores it.
        library: the VTA library, executable: the child; the built ones when None.
        limits: of the child; device: the name to put into records.
        environment: variables that the library reads; it sees no others of this process.

    Raises:
        InfraError: library or executable are not built. Everything that starts a child may raise it
            too when that fails, and TargetError when no hardware can have the target's parameters.
            A library that cannot be loaded makes every run a LOAD_ERROR.
    """

    def __init__(
        self,
        *,
        target: Target,
        library: Path | None = None,
        executable: Path | None = None,
        limits: RunnerLimits | None = None,
        environment: Mapping[str, str] | None = None,
        device: str = "local",
        clock: Clock | None = None,
    ) -> None:
        library = library or find_library()
        self._limits = limits or RunnerLimits()
        self._children = Children(
            target,
            library=library,
            executable=executable or find_executable(),
            limits=self._limits,
            environment=environment or {},
        )
        self._device = device
        self._clock = clock or SystemClock()
        self._child: RunnerChild | None = None
        self._loaded: tuple[Digest, Tenancy] | None = None
        self._ending = ExitStack()
        self._load_seconds = 0.0
        self._library_digest = Digest.of(library.read_bytes())

    @property
    def sandbox(self) -> str:
        """What children cannot do, in words. Starts what is not started yet."""
        return self._ready_words().sandbox

    @property
    def runtime_id(self) -> str:
        """Identity of the VTA library: measurements of equal identities can be compared."""
        return f"{self._ready_words().build_id} {self._library_digest.short}"

    def run(self, job: RunJob, blob: Blob, tenancy: Tenancy = OWN) -> Measurement | RunFailure:
        """Run every sample once, then the last one `repeats` times; check what is expected.

        Args:
            job: what to run. blob: where the bytes of a digest lie. tenancy: for whom; when it ends
                the run is killed, and cancelled.
        """
        begin = self._clock.seconds()
        outcome = self._outcome(job, blob, tenancy)
        if tenancy.over:
            outcome = Problem(Status.CANCELLED, f"its lease ended: {tenancy.over}")
        if isinstance(outcome, Measurement):
            return outcome
        return RunFailure(
            artifact=job.artifact,
            status=outcome.status,
            why=outcome.why,
            device=self._device,
            signal=outcome.signal,
            mismatch=outcome.mismatch,
            run_seconds=self._clock.seconds() - begin,
        )

    def close(self) -> None:
        """End the child. May be called again; `run` afterwards is an error."""
        self._drop_child()
        self._children.close()

    def _outcome(self, job: RunJob, blob: Blob, tenancy: Tenancy) -> Measurement | Problem:
        with ExitStack() as stack:
            contents = [
                stack.enter_context(_opened(blob(spec.content)))
                for spec in job.buffers
                if spec.content is not None
            ]
            if problem := _missing_content(job, contents):
                return problem
            results = stack.enter_context(_results_file(job))
            request = run_request(job, contents, results)
            if problem := self._send(job, blob, request, tenancy):
                return problem
            reply = self._reply(job)
            if not isinstance(reply, Done):
                return reply
            return self._checked(job, blob, reply, results)

    def _reply(self, job: RunJob) -> Done | Problem:
        assert self._child is not None
        try:
            reply = self._child.ran(job.limit_seconds)
        except ChildSilent:
            self._drop_child()
            return Problem(Status.RUN_TIMEOUT, f"no result after {job.limit_seconds:g} s")
        except ChildGone:
            return self._post_mortem(None)
        except InfraError as error:
            self._drop_child()
            return Problem(Status.RUN_CRASH, f"the kernel broke the connection: {error.what}")
        if isinstance(reply, Done):
            return reply
        return self._explain(reply)

    def _checked(self, job: RunJob, blob: Blob, done: Done, results: int) -> Measurement | Problem:
        outputs: list[tuple[str, bytes]] = []
        offset = 0
        for spec in job.buffers:
            if spec.role is not Role.OUTPUT:
                continue
            nbytes = spec.nbytes * job.samples
            if spec.expected is not None or spec.fetch:
                content = _read(results, offset, nbytes)
                if spec.expected is not None and Digest.of(content) != spec.expected:
                    mismatch = describe_mismatch(spec, content, blob)
                    return Problem(Status.WRONG_RESULT, mismatch, mismatch=mismatch)
                if spec.fetch:
                    outputs.append((spec.name, content))
            offset += nbytes
        return Measurement(
            artifact=job.artifact,
            device=self._device,
            counters=done.counters,
            wall_time=done.wall_time,
            profile=done.profile,
            seconds=done.seconds,
            sample_cycles=done.sample_cycles,
            outputs=tuple(outputs),
            timeline=done.timeline,
            load_seconds=self._load_seconds,
            run_seconds=done.run_seconds,
        )

    def _send(self, job: RunJob, blob: Blob, request: Request, tenancy: Tenancy) -> Problem | None:
        """Send the request to a child that has the artifact; a problem when it cannot be loaded.

        A new child gets it together with the request to load: it need not be woken for it.
        """
        child = self._child if self._loaded == (job.artifact, tenancy) else None
        if child is not None and child.alive and child.has_time_for(job.limit_seconds):
            self._load_seconds = 0.0
            child.schedule(timed=job.precision is not None)
            child.send(request)
            return None
        begin = self._clock.seconds()
        self._drop_child()
        try:
            with _opened(blob(job.artifact)) as artifact:
                self._child = self._children.child([load_request(artifact), request])
            self._ending.enter_context(tenancy.stopping(self._child.kill))
            reply = self._child.loaded(self._limits.start_seconds)
        except ChildSilent:
            self._drop_child()
            return Problem(Status.LOAD_ERROR, "loading the artifact does not end")
        except ChildGone:
            return self._post_mortem(None)
        except LibraryError as error:
            return Problem(Status.LOAD_ERROR, str(error))
        if not isinstance(reply, Ready):
            return self._explain(reply)
        self._child.schedule(timed=job.precision is not None)
        self._loaded = job.artifact, tenancy
        self._load_seconds = self._clock.seconds() - begin
        return None

    def _explain(self, reply: Reply) -> Problem:
        """What a reply that is no success means; the child that sent it is not used again."""
        if isinstance(reply, Fault):
            return self._post_mortem(reply)
        self._drop_child()
        if isinstance(reply, Failed):
            return refusal(reply)
        return Problem(Status.INFRA_ERROR, f"unexpected reply {reply} from the runner child")

    def _post_mortem(self, fault: Fault | None) -> Problem:
        """Why the child died, from its last words and its exit status."""
        assert self._child is not None
        status = self._child.wait()
        words = self._child.last_words()
        self._drop_child()
        number = fault.signal if fault is not None else max(0, -status)
        problem = death(number, status, fault)
        if not words:
            return problem
        return Problem(problem.status, f"{problem.why}; it wrote: {words}", problem.signal)

    def _ready_words(self) -> Ready:
        try:
            return self._children.ready()
        except LibraryError as error:
            raise InfraError(str(error)) from None

    def _drop_child(self) -> None:
        self._ending.close()
        if self._child is not None:
            self._child.close()
        self._child = None
        self._loaded = None


@contextmanager
def _results_file(job: RunJob) -> Iterator[int]:
    """A file in memory for the outputs of all samples."""
    outputs = (spec.nbytes for spec in job.buffers if spec.role is Role.OUTPUT)
    descriptor = os.memfd_create("vta-runner-results", os.MFD_CLOEXEC)
    try:
        os.ftruncate(descriptor, sum(outputs) * job.samples)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _missing_content(job: RunJob, descriptors: Sequence[int]) -> Problem | None:
    """A problem when a content is smaller than its buffer and samples need: the job is wrong."""
    filled = (spec for spec in job.buffers if spec.content is not None)
    for spec, descriptor in zip(filled, descriptors, strict=True):
        needed = spec.nbytes * (job.samples if spec.role is Role.INPUT else 1)
        nbytes = os.fstat(descriptor).st_size
        if nbytes < needed:
            why = f"buffer {spec.name}: content has {plural(nbytes, 'byte')}, {needed} are needed"
            return Problem(Status.LOAD_ERROR, why)
    return None


def _read(descriptor: int, offset: int, nbytes: int) -> bytes:
    pieces = []
    while nbytes and (piece := os.pread(descriptor, nbytes, offset)):
        pieces.append(piece)  # The system gives at most 2 GiB at once.
        offset, nbytes = offset + len(piece), nbytes - len(piece)
    return b"".join(pieces)
