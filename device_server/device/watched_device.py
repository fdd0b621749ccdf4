"""A device that has proven itself, and those who see to it for as long as it serves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import Any

from tilefarm.clock import Clock
from tilefarm.errors import SuspectError
from tilefarm.watch.log import Log

from device_server.device.board import HookedBoard
from device_server.device.canary import Canary, Proof
from device_server.device.health_monitor import HealthMonitor
from device_server.device.health_state import HealthState
from device_server.device.kernel_runner import KernelRunner
from device_server.device.known_kernel import KnownKernel
from device_server.device.runner_thread import RunnerThread
from device_server.device.settings import DeviceSettings
from device_server.device.usage_counters import UsageCounters


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedDevice:
    """A device that may serve.

    Attributes:
        runner: runs its kernels.
        sandbox: how they are confined.
        canary: what the known kernel gives.
        condition: how it is.
        thread: where its runner is called, in turns.
        watch: lets the known kernel run again.
        board: what is done to the board when it hangs.
    """

    runner: KernelRunner
    sandbox: str
    canary: Canary
    condition: HealthState
    thread: RunnerThread
    watch: HealthMonitor
    board: HookedBoard

    @property
    def proof(self) -> Proof:
        """What the known kernel gave before it served; its time is that of today's pace."""
        return self.canary.proof

    def duties(self) -> list[Coroutine[Any, Any, None]]:
        """What has to go on while it serves."""
        return [
            self.watch.cool_down(),
            self.watch.readmissions(),
            self.board.rescue(self.thread.stuck, self.condition),
        ]


@asynccontextmanager
async def watched_device(
    settings: DeviceSettings,
    runner: KernelRunner,
    known: KnownKernel,
    condition: HealthState,
    *,
    spoil: Callable[[SuspectError], None],
    clock: Clock,
    log: Log,
) -> AsyncIterator[WatchedDevice]:
    """The device behind a runner, once its board is programmed and the known kernel was right.

    Args:
        known: what it has to do right.
        condition: where all notes of how it is go.
        spoil: hears why the device is not right, whenever that is found out.

    Raises:
        SelfTestError: the known kernel was not right.
        InfraError: the board cannot be programmed, or the known kernel not be run.
        DeviceLostError: the device hangs.
    """
    board = HookedBoard(settings.hooks, settings.folder, log, device=settings.name)
    await board.prepare()
    thread = RunnerThread(
        settings.name,
        condition,
        log,
        counters=UsageCounters(clock),
        grace_seconds=settings.grace_seconds,
    )
    with closing(thread):
        canary = Canary(known, runner, settings.folder / "known", clock=clock, device=settings.name)
        watch = HealthMonitor(
            canary, thread, condition, settings.watch, log, device=settings.name, spoil=spoil
        )
        await watch.prove()
        yield WatchedDevice(
            runner=runner,
            sandbox=runner.sandbox,
            canary=canary,
            condition=condition,
            thread=thread,
            watch=watch,
            board=board,
        )
