"""A search on a farm in this process, whose devices may turn wrong or slow under it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from kit.farm.flaky import FlakyRunner
from kit.farm.in_process import CREDENTIALS, Farm, Server
from kit.objects.elves import Elf
from kit.search.stand_ins import SIM, StandInExecutor, toy_task
from tilefarm.artifact import Artifact, CompileJob, ProgramJob
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.measurement import Counters, Measurement, RunFailure, RunJob

from device_server.device.known_kernel import ENTRY, known_kernel
from device_server.tenancy import OWN, Tenancy
from driver.campaign.campaign import WorkLimits
from driver.campaign.interfaces import SearchResult, SearchSettings
from driver.campaign.loop import Loop
from driver.farm.compiling.executor import Builds, Deliver
from driver.farm.farms import RemoteFarm
from driver.farm.leases import Leases
from driver.run_events import RunEvent, TrialEnded
from driver.stop_token import StopToken
from driver.tune.continued import LOOKAHEAD, continued
from tuner.trial_store import TrialStore

KERNEL: Final = known_kernel(SIM, b"an artifact that nobody loads")
RIGHT_CYCLES: Final = 100
_LANES: Final = range(1, 5)
_EXTENT: Final = 720
CANDIDATES: Final = len(_LANES) * 30
"""Divisors of 720, for each task."""


@dataclass(slots=True)
class CountingRunner(FlakyRunner):
    """Measures RIGHT_CYCLES as long as it is right; `after` may change it after so many runs."""

    after: Callable[[CountingRunner, int], None] = lambda runner, runs: None

    def run(
        self, job: RunJob, blob: Callable[[Digest], Path], tenancy: Tenancy = OWN
    ) -> Measurement | RunFailure:
        outcome = FlakyRunner.run(self, job, blob, tenancy)
        if job.entry == ENTRY or not isinstance(outcome, Measurement):
            return outcome
        self.after(self, len(self.seen))
        cycles = round(RIGHT_CYCLES * self.pace) - self.flips
        return replace(outcome, counters=Counters(cycles=cycles))


class ElfExecutor(StandInExecutor):
    """Compiles at once to objects that devices accept."""

    def submit(
        self, batch: Sequence[tuple[int, CompileJob | ProgramJob]], deliver: Deliver
    ) -> None:
        def give(told: Builds | BaseException) -> None:
            assert isinstance(told, Builds)
            deliver(Builds(tuple(replace(b, result=_elf(b.result)) for b in told.builds)))

        StandInExecutor.submit(self, batch, give)


def _elf(result: object) -> Artifact:
    assert isinstance(result, Artifact)
    return replace(result, code=Elf(payload=result.code).build())


@dataclass(slots=True)
class Searched:
    """How a search ended."""

    result: SearchResult
    store: TrialStore
    events: list[RunEvent] = field(default_factory=list)


class Killed(BaseException):
    """What a kill does to a search: it ends where it is, and asks nobody anything."""


@dataclass(slots=True)
class KilledAfter:
    """Ends a search when so many trials were told."""

    trials: int

    def __call__(self, event: RunEvent) -> None:
        self.trials -= isinstance(event, TrialEnded)
        if not self.trials:
            raise Killed


@contextmanager
def searched(
    farm: Farm,
    tracker: Server,
    folder: Path,
    *,
    devices: int,
    run: str = "run",
    budget: int = 1000,
    listen: Callable[[RunEvent], None] = lambda event: None,
) -> Iterator[Searched]:
    """A search of all candidates on a farm, to its end; every search of a farm is another run.

    It goes on with what is in the folder.
    """
    tasks = {task.name: task for task in (toy_task(lanes, _EXTENT) for lanes in _LANES)}
    leases = Leases(RemoteFarm(tracker.address, CREDENTIALS), SIM, owner="search")
    events: list[RunEvent] = []

    def hear(event: RunEvent) -> None:
        events.append(event)
        listen(event)

    with TrialStore(folder / "records.sqlite") as store:
        limits = WorkLimits(workers=2)
        earlier = continued(
            tasks,
            store,
            trials=budget,
            proposer="random",
            seed=0,
            lookahead=limits.busy_lookahead(devices).most,
        )
        description = {LOOKAHEAD: earlier.session.lookahead.most}
        store.begin_run(run, description, begun=0.0)
        loop = Loop(
            tasks=tasks,
            session=earlier.session,
            records=store,
            executor=ElfExecutor(),
            devices=leases,
            settings=SearchSettings(
                devices=devices,
                limits=limits,
                device_wait_seconds=30.0,
                run_timeout_seconds=60.0,
                run_id=run,
                wall_origin=0.0,
                search=earlier.search,
            ),
            clock=SystemClock(),
            listen=hear,
        )
        try:
            yield Searched(loop.run(StopToken()), store, events)
        finally:
            leases.close()
