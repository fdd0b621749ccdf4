"""One search of the driver over a farm: its trials, what was done when, and what it computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Final

from tilefarm.artifact import Artifact
from tilefarm.clock import Clock
from tilefarm.lease import Lease
from tilefarm.measurement import Trial
from tilefarm.rpc.device_calls import RunReply
from tilefarm.target import Target
from tilefarm.threads import Breakage, start_thread

from device_server.device.batch import Ask
from driver.benchmarks.farm.usage import ThreadWatch, tree_seconds
from driver.campaign.campaign import WorkLimits
from driver.campaign.interfaces import SearchSettings
from driver.campaign.loop import Loop
from driver.campaign.measuring import Task
from driver.campaign.tasks import task_of
from driver.farm.compiling.executor import Executor
from driver.farm.lease_source import LeaseSource
from driver.farm.plausible import UNKNOWN, RunBounds
from driver.farm.retrying_client import Client
from driver.program.vta.layers import Convolution
from driver.run_events import DeviceJoined, RunEvent, Span
from driver.stop_token import StopToken
from tuner.session import TuningSession, WeightedSpace
from tuner.trial_store import TrialPosition, TrialStore

LAYERS: Final = (
    Convolution(16, 16, 8, 8, 1, 1, 0),
    Convolution(16, 32, 8, 8, 3, 1, 1),
    Convolution(32, 32, 8, 8, 3, 1, 1),
)
"""What is searched: convolutions so small that a simulator runs one in milliseconds."""

_PROPOSER: Final = "random"
_RUN: Final = "bench"
_SEED: Final = 0
_DEVICE_WAIT_SECONDS: Final = 60.0
_RUN_TIMEOUT_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSetup:
    """What is searched with: devices, compile workers, and the end: trials, or seconds after all
    devices have joined.
    """

    devices: int
    workers: int
    trials: int
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorSeconds:
    """What a search used of processors since it began.

    Attributes:
        threads: of the driver's threads, by kind; driver: of all of them.
        farm: of tracker, devices and runners.
    """

    threads: Mapping[str, float]
    driver: float
    farm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmSearch:
    """One search. Times of day are wall seconds.

    Attributes:
        trials: that ended.
        spans: what was done when.
        built: when the driver heard of each candidate that had compiled.
        began: when as many devices had joined as were asked for, and of each task a candidate had
            compiled: its space is known by then. One may join again later.
        ended: when it was told to begin nothing new, or ended by itself.
        kernels: what devices say that each run took, in seconds.
    """

    devices: int
    trials: tuple[Trial, ...]
    spans: tuple[Span, ...]
    built: tuple[float, ...]
    began: float
    ended: float
    kernels: tuple[float, ...]
    processor: ProcessorSeconds

    @property
    def candidates(self) -> int:
        """Compiled since it began."""
        return sum(at >= self.began for at in self.built)

    @property
    def told(self) -> int:
        """Trials that ended since it began."""
        ends = (max(end for _, _, end in trial.spans) for trial in self.trials)
        return sum(end >= self.began for end in ends)


def layer_tasks(target: Target) -> dict[str, Task]:
    """What is searched, by name."""
    tasks = [
        task_of(layer.workload(target), target, count=1, macs=layer.macs, seed=_SEED)
        for layer in LAYERS
    ]
    return {task.name: task for task in tasks}


class AsleepTask(Task):
    """One whose kernels sleep: what an honest device would count is not held against it."""

    __slots__ = ()

    def bounds(self, artifact: Artifact) -> RunBounds:  # noqa: ARG002
        return UNKNOWN


def asleep(task: Task) -> Task:
    """The same workload for devices that do not run it."""
    return AsleepTask(**{f.name: getattr(task, f.name) for f in fields(task) if f.init})


def search(
    tasks: Mapping[str, Task],
    executor: Executor,
    devices: LeaseSource,
    plan: SearchSetup,
    *,
    records: Path,
    clock: Clock,
    farm: Callable[[], Iterable[int]] = tuple,
) -> FarmSearch:
    """Search until the plan's end, with the driver's own loop and a file of records.

    `farm` gives the processes whose work counts as the farm's, with all below them.

    Raises:
        NoDeviceError: there is none.
        FarmFault: compiling is not possible any more.
    """
    with TrialStore(records) as store:
        store.begin_run(_RUN, {}, begun=clock.wall_seconds())
        threads = ThreadWatch()
        unknown = set(tasks)
        seen = _Seen(
            store=store, clock=clock, plan=plan, farm=farm, threads=threads, unknown=unknown
        )
        metered = _Metered(devices)
        loop = _loop(tasks, executor, metered, plan, seen)
        with threads:
            result = loop.run(seen.stop)
        seen.broken.check()
        used = ProcessorSeconds(
            threads=threads.by_kind(),
            driver=threads.process_seconds,
            farm=tree_seconds(farm()) - seen.farm_seconds,
        )
    if result.error is not None:
        raise result.error
    return FarmSearch(
        devices=plan.devices,
        trials=tuple(seen.trials),
        spans=tuple(loop.spans),
        built=tuple(seen.built),
        began=seen.began,
        ended=seen.stopped or clock.wall_seconds(),
        kernels=tuple(metered.run_seconds),
        processor=used,
    )


@dataclass(slots=True)
class _Seen:
    """What a search tells while it goes on; stops it when its seconds are over."""

    store: TrialStore
    clock: Clock
    plan: SearchSetup
    farm: Callable[[], Iterable[int]]
    threads: ThreadWatch
    unknown: set[str]
    farm_seconds: float = 0.0
    stop: StopToken = field(default_factory=StopToken)
    trials: list[Trial] = field(default_factory=list)
    joined: int = 0
    began: float = 0.0
    built: list[float] = field(default_factory=list)
    stopped: float = 0.0
    broken: Breakage = field(default_factory=Breakage)

    def insert(self, trial: Trial, *, run: str, place: TrialPosition | None = None) -> bool:
        self.trials.append(trial)
        return self.store.insert(trial, run=run, place=place)

    def insert_pace(self, device: str, seconds: float) -> None:
        self.store.insert_pace(device, seconds)

    def listen(self, event: RunEvent) -> None:
        if isinstance(event, Span) and event.kind == "compile":
            self.built.append(self.clock.wall_seconds())
            if event.label in self.unknown:
                self.unknown.remove(event.label)
                if not self.unknown and self.joined >= self.plan.devices:
                    self._begin()
        if isinstance(event, DeviceJoined):
            self.joined += 1
            if self.joined == self.plan.devices:
                self._begin()
                if self.plan.seconds is not None:
                    end = partial(self._end_after, self.plan.seconds)
                    start_thread(end, name="limit", broken=self._break)

    def _begin(self) -> None:
        """It begins anew with the last task's first candidate, unless its time was over before."""
        if self.stopped:
            return
        self.began = self.clock.wall_seconds()
        self.farm_seconds = tree_seconds(self.farm())
        self.threads.begin()

    def _end_after(self, seconds: float) -> None:
        while (left := self.began + seconds - self.clock.wall_seconds()) > 0:
            self.clock.sleep(left)
        self.stopped = self.clock.wall_seconds()
        self.stop.request_stop()

    def _break(self, error: Exception) -> None:
        self.broken(error)
        self.stop.request_stop()


class _Metered:
    """Devices, and what they say that each run took."""

    def __init__(self, source: LeaseSource) -> None:
        self._source = source
        self.run_seconds: list[float] = []

    def acquire(self, wait_seconds: float, gone: Callable[[], bool]) -> Lease:
        return self._source.acquire(wait_seconds, gone)

    def connect(self, lease: Lease) -> Client:
        return _MeteredClient(self._source.connect(lease), self.run_seconds)

    def lost(self, lease: Lease) -> str:
        return self._source.lost(lease)

    def wanted(self, lease: Lease) -> bool:
        return self._source.wanted(lease)

    def void(self, lease: Lease) -> str:
        return self._source.void(lease)

    def release(
        self, lease: Lease, *, device_lost: bool = False, why: str = "", for_good: bool = False
    ) -> None:
        self._source.release(lease, device_lost=device_lost, why=why, for_good=for_good)


class _MeteredClient:
    def __init__(self, client: Client, run_seconds: list[float]) -> None:
        self._client = client
        self._run_seconds = run_seconds
        self.send_ahead = client.send_ahead
        self.close = client.close
        self.confirm = client.confirm

    def run_batch(self, asked: Sequence[Ask]) -> list[RunReply]:
        answers = self._client.run_batch(asked)
        self._run_seconds += [answer.outcome.run_seconds for answer in answers]
        return answers


def _loop(
    tasks: Mapping[str, Task],
    executor: Executor,
    devices: LeaseSource,
    plan: SearchSetup,
    seen: _Seen,
) -> Loop:
    limits = WorkLimits(workers=plan.workers)
    session = TuningSession(
        {
            name: WeightedSpace(t.space, weight=t.count, lower_bound_cycles=t.ideal_cycles)
            for name, t in tasks.items()
        },
        trials=plan.trials,
        proposer=_PROPOSER,
        seed=_SEED,
        lookahead=limits.busy_lookahead(plan.devices),
    )
    return Loop(
        tasks=tasks,
        session=session,
        records=seen,
        executor=executor,
        devices=devices,
        settings=SearchSettings(
            devices=plan.devices,
            limits=limits,
            device_wait_seconds=_DEVICE_WAIT_SECONDS,
            run_timeout_seconds=_RUN_TIMEOUT_SECONDS,
            run_id=_RUN,
            wall_origin=0.0,
            proposer=_PROPOSER,
        ),
        clock=seen.clock,
        listen=seen.listen,
    )
