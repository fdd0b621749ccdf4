"""A search over toys with stand-ins for workers and devices, and all that it records and says."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kit.search.stand_ins import StandInDevices, StandInExecutor, toy_task
from tilefarm.clock import Clock, SystemClock
from tilefarm.measurement import Trial

from driver.campaign.campaign import WorkLimits
from driver.campaign.interfaces import SearchResult, SearchSettings
from driver.campaign.loop import Loop
from driver.run_events import DeviceJoined, RunEvent, TrialEnded
from driver.stop_token import StopToken
from tuner.lookahead import Lookahead
from tuner.session import TuningSession, WeightedSpace
from tuner.trial_store import TrialPosition


@dataclass
class Scene:
    """One search over toys.

    Attributes:
        together: no device answers before all `count` have joined.
    """

    devices: StandInDevices
    executor: StandInExecutor = field(default_factory=StandInExecutor)
    trials: int = 20
    extent: int = 12
    lookahead: int = 40
    device_wait: float = 5.0
    count: int = 1
    together: bool = False
    kept: list[Trial] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    paces: list[tuple[str, float]] = field(default_factory=list)
    events: list[RunEvent] = field(default_factory=list)
    stop: StopToken = field(default_factory=StopToken)
    limits: WorkLimits = field(default_factory=lambda: WorkLimits(workers=2))
    on_trial: Callable[[], None] = lambda: None
    clock: Clock = field(default_factory=SystemClock)
    least_cycles: int = 0
    most_device_seconds: float = math.inf

    def insert(self, trial: Trial, *, run: str, place: TrialPosition | None = None) -> bool:
        assert place is not None
        self.kept.append(trial)
        self.places.append(place.number)
        self.on_trial()
        return True

    def insert_pace(self, device: str, seconds: float) -> None:
        self.paces.append((device, seconds))

    def play(self) -> SearchResult:
        if self.together:
            self.devices.may_run = self._have_joined
        toys = (toy_task(lanes, self.extent) for lanes in (1, 2))
        tasks = {t.name: replace(t, least_cycles=self.least_cycles) for t in toys}
        session = TuningSession(
            {name: WeightedSpace(task.space, weight=task.count) for name, task in tasks.items()},
            trials=self.trials,
            proposer="random",
            lookahead=Lookahead(self.lookahead),
        )
        self.loop = Loop(
            tasks=tasks,
            session=session,
            records=self,
            executor=self.executor,
            devices=self.devices,
            settings=SearchSettings(
                devices=self.count,
                limits=self.limits,
                device_wait_seconds=self.device_wait,
                run_timeout_seconds=60.0,
                run_id="run-1",
                wall_origin=0.0,
                proposer="random",
                most_device_seconds=self.most_device_seconds,
            ),
            clock=self.clock,
            listen=self.events.append,
        )
        return self.loop.run(self.stop)

    def _have_joined(self) -> bool:
        return sum(isinstance(event, DeviceJoined) for event in self.events) >= self.count

    def ended(self) -> list[TrialEnded]:
        return [e for e in self.events if isinstance(e, TrialEnded)]
