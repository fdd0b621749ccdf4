"""Runs compiled kernels in a sandboxed child, and turns whatever happens there into a record."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tilefarm.clock import Clock, SystemClock
from tilefarm.closing import Closing
from tilefarm.digest import Digest
from tilefarm.errors import InfraError
from tilefarm.measurement import Measurement, Role, RunFailure, RunJob, Status
from tilefarm.plural import plural
from tilefarm.target import Target

from device_server.runner.accounts import Counted, counted, profiled
from device_server.runner.child import RunnerChild
from device_server.runner.children import Children, LibraryError
from device_server.runner.connection import ChildGone, ChildSilent
from device_server.runner.frames import (
    Account,
    DoneReply,
    FailedReply,
    FailureKind,
    Fault,
    Ready,
    Reply,
    Request,
    load_request,
    run_request,
)
from device_server.runner.idle_accelerators import IdleAccelerators
from device_server.runner.output_file import OutputFile
from device_server.runner.told_times import implausible
from device_server.runner.verdicts import Blob, RunProblem, death, refusal
from device_server.runner.zygote import RunnerLimits
from device_server.tenancy import OWN, Tenancy
from device_server.vta.library.native import find_executable, find_library_for

__all__ = ["Runner", "RunnerLimits"]

_ACCOUNT_SECONDS: Final = 5.0
"""An accelerator whose child has its answer has nothing more to do, unless a kernel lies."""


@dataclass(frozen=True, slots=True)
class _Run:
    """What all requests of one run have: its blobs, for whom it is, and its files, open."""

    blob: Blob
    tenancy: Tenancy
    contents: Sequence[int]
    results: OutputFile


class Runner(Closing):
    """One accelerator to run on. Keeps at most one child; a bad kernel costs that child only.

    A child serves one artifact of one tenancy, however often it is run: once the artifact is loaded
    the child can open nothing more. It dies when the tenancy ends, also while it does nothing. The
    process that plays its accelerator loads nothing and goes on to the next child of the tenancy,
    if the one before ended well. Not thread safe: one job at a time, as on a board.

    Args:
        target: the accelerator; a board's own library ignores it.
        library: the VTA library, executable: the child; the built ones when None.
        limits: of the child, which has at least the target's threads.
        device: the name to put into records.
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
        library = library or find_library_for(target)
        self._limits = limits or RunnerLimits()
        if target.model.threads > self._limits.threads:
            self._limits = replace(self._limits, threads=target.model.threads)
        self.children = Children(
            target,
            library=library,
            executable=executable or find_executable(),
            limits=self._limits,
            environment=environment or {},
        )
        self._device = device
        self._clock = clock or SystemClock()
        self.child: RunnerChild | None = None
        self._loaded: tuple[Digest, Tenancy] | None = None
        self._idle = IdleAccelerators()
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
        """Run every sample once, then one of them `repeats` times; check what is expected.

        Args:
            job: what to run. blob: where the bytes of a digest lie. tenancy: for whom; when it ends
                the run is killed, and cancelled.
        """
        begin = self._clock.seconds()
        outcome = self._outcome(job, blob, tenancy)
        if tenancy.over:
            outcome = RunProblem(Status.CANCELLED, f"its lease ended: {tenancy.over}")
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
            untimed=outcome.untimed,
        )

    def close(self) -> None:
        """End the child. May be called again; `run` afterwards is an error."""
        self._drop_child()
        self._idle.close()
        self.children.close()

    def _outcome(self, job: RunJob, blob: Blob, tenancy: Tenancy) -> Measurement | RunProblem:
        with ExitStack() as stack:
            contents = [
                stack.enter_context(_opened(blob(spec.content)))
                for spec in job.buffers
                if spec.content is not None
            ]
            if problem := _missing_content(job, contents):
                return problem
            results = stack.enter_context(OutputFile(job))
            try:
                apart = self.children.ready().apart
            except LibraryError as error:
                return RunProblem(Status.LOAD_ERROR, str(error))
            run = self._run_apart if apart else self._run_at_once
            return run(job, _Run(blob, tenancy, contents, results))

    def _run_at_once(self, job: RunJob, run: _Run) -> Measurement | RunProblem:
        """Run where whatever counts is in the child, or nothing does."""
        done = self._done(job, run, job.limit_seconds)
        if not isinstance(done, DoneReply):
            return done
        outputs = run.results.outputs(job, run.blob)
        if isinstance(outputs, RunProblem):
            return outputs
        return self._measurement(job, done, done, outputs)

    def _run_apart(self, job: RunJob, run: _Run) -> Measurement | RunProblem:
        """Run where a process keeps account of what its accelerator does.

        The outputs are read before the account is asked for, so all that made them is in it. They
        show that every sample was computed; nothing shows that a call was repeated. So what is
        timed runs by itself, and counts only for a profile.
        """
        begin = self._clock.seconds()
        is_timed = bool(job.repeats or job.precision or job.profile)
        plain = replace(job, repeats=0, precision=None, profile=()) if is_timed else job
        done = self._done(plain, run, plain.limit_seconds)
        if not isinstance(done, DoneReply):
            return done
        outputs = run.results.outputs(job, run.blob)
        account = self._account()
        found = counted(plain, account) if isinstance(account, Account) else account
        if isinstance(found, RunProblem):
            self._drop_child()
            return found
        if isinstance(outputs, RunProblem):
            return outputs
        measurement = self._measurement(job, done, found, outputs)
        if not is_timed:
            return measurement
        left_seconds = job.limit_seconds - (self._clock.seconds() - begin)
        return self._timed(measurement, job, run, left_seconds)

    def _timed(
        self, measurement: Measurement, job: RunJob, run: _Run, limit_seconds: float
    ) -> Measurement | RunProblem:
        """With the times of the calls that are only timed: of the first sample, once more."""
        first = run.results.first_sample(job)
        again = replace(job, samples=1, timeline=False)
        done = self._done(again, run, limit_seconds)
        if not isinstance(done, DoneReply):
            return done
        account = self._account()
        cycles = profiled(again, account) if isinstance(account, Account) else account
        if isinstance(cycles, RunProblem):
            self._drop_child()
            return cycles
        for index, content in run.results.first_sample(again).items():
            if content != first[index]:
                why = f"buffer {index} differs between two calls with the same inputs"
                return RunProblem(Status.WRONG_RESULT, why)
        return replace(
            measurement,
            seconds=done.seconds,
            wall_time=done.wall_time,
            profile=tuple(
                replace(call, cycles=each) for call, each in zip(done.profile, cycles, strict=True)
            ),
            run_seconds=measurement.run_seconds + done.run_seconds,
        )

    def _done(self, job: RunJob, run: _Run, limit_seconds: float) -> DoneReply | RunProblem:
        """Run it in the child, to its end; what the child says of it can be true."""
        request = run_request(job, run.contents, run.results.descriptor)
        if problem := self._send(job, run.blob, request, run.tenancy):
            return problem
        assert self.child is not None
        try:
            reply = self.child.ran(limit_seconds)
        except ChildSilent:
            self._drop_child()
            return RunProblem(Status.RUN_TIMEOUT, f"no result after {limit_seconds:g} s")
        except ChildGone:
            return self._post_mortem(None)
        except InfraError as error:
            return self._broken(error.what)
        if isinstance(reply, FailedReply) and reply.kind is FailureKind.PROTOCOL:
            return self._broken(reply.why)  # Once it is loaded, requests are in order.
        disturbed = self.child.disturbed() if job.precision else None
        if not isinstance(reply, DoneReply):
            return self._explain(reply, disturbed.words if disturbed else "")
        if why := implausible(job, reply, self.child.busy_seconds):
            return self._broken(f"it tells of {why}")
        if disturbed is None or reply.wall_time is None:
            return reply
        return replace(reply, wall_time=disturbed.told_in(reply.wall_time))

    def _broken(self, why: str) -> RunProblem:
        """The kernel spoke for its child: what comes from there is worth nothing."""
        self._drop_child()
        return RunProblem(Status.RUN_CRASH, f"the kernel broke the connection: {why}")

    def _account(self) -> Account | RunProblem:
        """What the accelerator did since it was asked last."""
        assert self.child is not None
        accelerator = self.child.accelerator
        assert accelerator is not None
        try:
            reply = accelerator.account(_ACCOUNT_SECONDS)
        except ChildSilent:
            why = f"the accelerator goes on working, {_ACCOUNT_SECONDS:g} s after the kernel's end"
        except ChildGone:
            why = "the process that plays the accelerator has ended"
        except InfraError as error:
            why = f"the accelerator did more than it can tell: {error.what}"
        else:
            if isinstance(reply, Account):
                return reply
            if isinstance(reply, FailedReply):
                return refusal(reply)
            why = f"the process that plays the accelerator ended: {reply}"
        return RunProblem(Status.RUN_CRASH, why)

    def _measurement(
        self,
        job: RunJob,
        done: DoneReply,
        found: DoneReply | Counted,
        outputs: tuple[tuple[str, bytes], ...],
    ) -> Measurement:
        """What the child tells of times, and what is found of cycles there or elsewhere."""
        return Measurement(
            artifact=job.artifact,
            device=self._device,
            counters=found.counters,
            wall_time=done.wall_time,
            profile=done.profile,
            seconds=done.seconds,
            sample_cycles=found.sample_cycles,
            outputs=outputs,
            timeline=found.timeline,
            load_seconds=self._load_seconds,
            run_seconds=done.run_seconds,
        )

    def _send(
        self, job: RunJob, blob: Blob, request: Request, tenancy: Tenancy
    ) -> RunProblem | None:
        """Send the request to a child that has the artifact; a problem when it cannot be loaded.

        A new child gets it together with the request to load: it need not be woken for it.
        """
        child = self.child if self._loaded == (job.artifact, tenancy) else None
        if child is not None and child.alive and child.has_time_for(job.limit_seconds):
            self._load_seconds = 0.0
            child.schedule(timed=job.precision is not None)
            child.send(request)
            return None
        begin = self._clock.seconds()
        try:
            with _opened(blob(job.artifact)) as artifact:
                first = [load_request(artifact), request]
                self._free_accelerator()
                accelerator = self._idle.take(tenancy, job.limit_seconds)
                self.child = self.children.child(first, accelerator)
            self._ending.enter_context(tenancy.stopping(self.child.kill))
            reply = self.child.loaded(self._limits.start_seconds)
        except ChildSilent:
            self._drop_child()
            return RunProblem(Status.LOAD_ERROR, "loading the artifact does not end")
        except ChildGone:
            return self._post_mortem(None)
        except LibraryError as error:
            return RunProblem(Status.LOAD_ERROR, str(error))
        if not isinstance(reply, Ready):
            return self._explain(reply)
        self.child.schedule(timed=job.precision is not None)
        self._loaded = job.artifact, tenancy
        self._load_seconds = self._clock.seconds() - begin
        return None

    def _free_accelerator(self) -> None:
        """Drop the child, but not its accelerator, if it may serve the next one of the tenancy.

        A child that lives has had its answers, so its accelerator has nothing more to do.
        """
        child = self.child
        if child is not None and child.alive and self._loaded is not None:
            accelerator = child.release_accelerator()
            if accelerator is not None:
                self._idle.keep(accelerator, self._loaded[1])
        self._drop_child()

    def _explain(self, reply: Reply, disturbances: str = "") -> RunProblem:
        """What a reply that is no success means; the child that sent it is not used again.

        What the host did meanwhile says why nothing could be timed.
        """
        if isinstance(reply, Fault):
            return self._post_mortem(reply)
        if isinstance(reply, FailedReply):
            self._drop_child()
            problem = refusal(reply)
            if not (problem.untimed and disturbances):
                return problem
            return replace(problem, why=f"{problem.why} ({disturbances})")
        return self._broken(f"it answers with {type(reply).__name__}")

    def _post_mortem(self, fault: Fault | None) -> RunProblem:
        """Why the child died, from its last words and its exit status."""
        assert self.child is not None
        status = self.child.wait()
        words = self.child.last_words()
        self._drop_child()
        number = fault.signal if fault is not None else max(0, -status)
        problem = death(number, status, fault)
        if not words:
            return problem
        return RunProblem(problem.status, f"{problem.why}; it wrote: {words}", problem.signal)

    def _ready_words(self) -> Ready:
        try:
            return self.children.ready()
        except LibraryError as error:
            raise InfraError(str(error)) from None

    def _drop_child(self) -> None:
        self._ending.close()
        if self.child is not None:
            self.child.close()
        self.child = None
        self._loaded = None


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _missing_content(job: RunJob, descriptors: Sequence[int]) -> RunProblem | None:
    """A problem when a content is smaller than its buffer and samples need: the job is wrong."""
    filled = (spec for spec in job.buffers if spec.content is not None)
    for spec, descriptor in zip(filled, descriptors, strict=True):
        needed = spec.nbytes * (job.samples if spec.role is Role.INPUT else 1)
        nbytes = os.fstat(descriptor).st_size
        if nbytes < needed:
            why = f"buffer {spec.name}: content has {plural(nbytes, 'byte')}, {needed} are needed"
            return RunProblem(Status.LOAD_ERROR, why)
    return None
