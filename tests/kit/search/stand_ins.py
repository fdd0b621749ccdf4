"""Stand-ins for compile workers and devices, quick and obedient, for tests of the driver."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kit.farm.in_process import eventually
from kit.search.toy_spaces import pair_space, timed
from tilefarm.artifact import Artifact, BuildFailure, CompileJob, ProgramJob
from tilefarm.digest import Digest
from tilefarm.dtype import DType
from tilefarm.errors import DeviceLostError, DeviceSilentError, FarmFault, NoDeviceError
from tilefarm.lease import DeviceInfo, Lease
from tilefarm.measurement import (
    Counters,
    DeviceClock,
    Measurement,
    RunFailure,
    RunJob,
    Status,
    is_spoiled,
)
from tilefarm.rpc.device_calls import RunReply
from tilefarm.space import Point
from tilefarm.target import TARGETS
from tilefarm.trace import Step, Trace
from tilefarm.workload import TensorSpec, Workload

from device_server.device.batch import Ask
from driver.campaign.measuring import KernelArguments, Task
from driver.farm.compiling.executor import Build, Builds, Deliver

SIM = TARGETS["sim"]


def toy_workload(lanes: int = 1) -> Workload:
    """A dense layer of `lanes` blocks; nothing runs it."""
    return Workload(
        operator="dense",
        inputs=(
            TensorSpec("data", (1, 1, 1, 16), DType.INT8),
            TensorSpec("weight", (lanes, 1, 16, 16), DType.INT8),
            TensorSpec("bias", (lanes, 1, 16, 16), DType.INT8),
            TensorSpec("unit", (1, 16), DType.INT8),
            TensorSpec("shift", (lanes,), DType.INT32),
        ),
        outputs=(TensorSpec("out", (1, lanes, 1, 16), DType.INT8),),
        attrs=(("lo", -128), ("hi", 127)),
    )


def toy_trace(point: Point) -> Trace:
    """A schedule that says which point it came from, by what was chosen."""
    return Trace((Step("tile", (point["inner"],)),))


def toy_task(lanes: int = 1, extent: int = 12) -> Task:
    """A task over the divisors of `extent`; its best point is the largest `inner`."""
    return Task(
        workload=toy_workload(lanes),
        count=lanes,
        macs=256 * lanes,
        ideal_cycles=1,
        space=pair_space(extent, limit=extent),
        trace=toy_trace,
        target=SIM,
        arguments=KernelArguments(),
    )


@dataclass(slots=True)
class StandInExecutor:
    """Compiles at once, in the caller's thread; `refuse` says which jobs fail and how."""

    refuse: Callable[[CompileJob | ProgramJob], Status | None] = lambda job: None
    built: list[CompileJob | ProgramJob] = field(default_factory=list)
    closed: bool = False

    def submit(
        self, batch: Sequence[tuple[int, CompileJob | ProgramJob]], deliver: Deliver
    ) -> None:
        self.built += [job for _, job in batch]
        builds = [
            Build(
                number=number,
                result=self._result(job),
                lane="compile 1",
                began_seconds=0.0,
                ended_seconds=0.1,
            )
            for number, job in batch
        ]
        deliver(Builds(tuple(builds)))

    def close(self) -> None:
        self.closed = True

    def _result(self, job: CompileJob | ProgramJob) -> Artifact | BuildFailure:
        status = self.refuse(job)
        if status is not None:
            return BuildFailure(job=job.digest, status=status, stage="toy", why="refused")
        code = job.trace.to_json() if isinstance(job, CompileJob) else "program"
        return Artifact(job=job.digest, code=code.encode(), symbols=("kernel",))


RunKernel = Callable[[bytes, RunJob], Measurement | RunFailure]
"""What a stand-in device does with the code and the job."""


def cycles_of_tile(code: bytes, job: RunJob) -> Measurement:
    """1000 cycles by the toy schedule's `inner`."""
    inner = Trace.from_json(code.decode()).steps[0].args[0]
    assert isinstance(inner, int)
    return Measurement(artifact=job.artifact, device="", counters=Counters(cycles=1000 // inner))


def seconds_of_tile(code: bytes, job: RunJob) -> Measurement:
    """As many microseconds, by a noisy clock; nothing unless a precision was asked for."""
    counted = cycles_of_tile(code, job)
    assert counted.cycles is not None
    wall_time = timed(1e-6 * counted.cycles, noise=0.01) if job.precision else None
    return replace(counted, counters=None, wall_time=wall_time)


@dataclass(slots=True)
class StandInClient:
    """Runs kernels by a function; what that raises it raises from then on, under the same lease."""

    name: str
    run_kernel: RunKernel
    blobs: dict[Digest, bytes] = field(default_factory=dict)
    closed: bool = False
    unchecked: int = 0
    confirmed: list[str] = field(default_factory=list)
    faults: list[FarmFault] = field(default_factory=list)
    calls: list[list[str]] = field(default_factory=list)
    may_run: Callable[[], bool] = lambda: True

    def send_ahead(self, blobs: Mapping[Digest, bytes]) -> None:
        self.blobs.update(blobs)

    def run_batch(self, asked: Sequence[Ask]) -> list[RunReply]:
        """The first ones, until something befalls the device; of a silent one nobody hears any."""
        eventually(self.may_run)
        self.calls.append([one.request_id for one in asked])
        answers: list[RunReply] = []
        for one in asked:
            self.blobs.update(one.blobs)
            try:
                if self.faults:
                    raise self.faults[0]
                outcome = self.run_kernel(self.blobs[one.job.artifact], one.job)
            except FarmFault as fault:
                self.faults[:] = [fault]
                if isinstance(fault, DeviceSilentError) or not answers:
                    raise
                break
            answers.append(RunReply(outcome=outcome, unchecked=self.unchecked))
            if is_spoiled(outcome):
                break
        return answers

    def confirm(self) -> None:
        self.confirmed.append(self.name)

    def close(self) -> None:
        self.closed = True


def stand_in_lease(name: str, fence: int = 1, clock: DeviceClock = DeviceClock.CYCLES) -> Lease:
    device = DeviceInfo(
        name=name,
        address="nowhere:1",
        target=SIM.digest,
        runtime="toy",
        sandbox="none",
        epoch="1",
        clock=clock,
    )
    return Lease(lease_id=f"lease-{fence}", device=device, fence=fence, ttl_seconds=10)


class StandInDevices:
    """A lease source of so many devices; losses are raised by `run_kernel`.

    Every run leaves `unchecked` unconfirmed ones; `confirmed` lists who was asked to confirm.
    Others want `wanted_devices`, until they are given back. `calls` lists the requests that were
    made together. No device answers a run before it `may_run`.
    """

    def __init__(
        self,
        count: int = 1,
        run_kernel: RunKernel = cycles_of_tile,
        *,
        unchecked: int = 0,
        client: type[StandInClient] = StandInClient,
        clock: DeviceClock = DeviceClock.CYCLES,
    ) -> None:
        self._clock = clock
        self._unchecked = unchecked
        self._client = client
        self.may_run: Callable[[], bool] = lambda: True
        self.confirmed: list[str] = []
        self.wanted_devices: set[str] = set()
        self._free = [f"sim{n}" for n in range(count)]
        self._run_kernel = run_kernel
        self.calls: list[list[str]] = []
        self._faults: dict[str, list[FarmFault]] = {}
        self._fences = itertools.count(1)
        self._changed = threading.Condition()
        self.released: list[tuple[str, bool]] = []

    def acquire(self, wait_seconds: float, gone: Callable[[], bool] = lambda: False) -> Lease:
        until = time.monotonic() + wait_seconds
        with self._changed:
            while not self._free:
                left = until - time.monotonic()
                if left <= 0 or gone():
                    raise NoDeviceError("no device", "start one")
                self._changed.wait(min(left, 0.05))
            name = self._free.pop(0)
        return stand_in_lease(name, next(self._fences), self._clock)

    def connect(self, lease: Lease) -> StandInClient:
        return self._client(
            lease.device.name,
            self._run_kernel,
            unchecked=self._unchecked,
            confirmed=self.confirmed,
            calls=self.calls,
            faults=self._faults.setdefault(lease.lease_id, []),
            may_run=self.may_run,
        )

    def lost(self, lease: Lease) -> str:
        return ""

    def wanted(self, lease: Lease) -> bool:
        """Whether a test said so, since the device was leased."""
        with self._changed:
            return lease.device.name in self.wanted_devices

    def void(self, lease: Lease) -> str:
        return ""

    def release(
        self, lease: Lease, *, device_lost: bool = False, why: str = "", for_good: bool = False
    ) -> None:
        with self._changed:
            self.released.append((lease.device.name, device_lost))
            self.wanted_devices.discard(lease.device.name)
            if not for_good:
                self._free.append(lease.device.name)
            self._changed.notify()


def losing_first(times: int, run_kernel: RunKernel = cycles_of_tile) -> RunKernel:
    """Loses the device under the first so many runs."""
    left = itertools.count()

    def run(code: bytes, job: RunJob) -> Measurement | RunFailure:
        if next(left) < times:
            raise DeviceLostError("pulled")
        return run_kernel(code, job)

    return run
