"""A few runs on whatever devices there are, each until it is answered.

What the farm spoils is done again, on another device if there is one, after a pause that grows: a
whole search has come before these runs, and most of what befalls a farm is over within a minute.
So is what a device gave that cannot confirm it in the end.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tilefarm.clock import Clock
from tilefarm.errors import DeviceLostError
from tilefarm.lease import Lease
from tilefarm.plural import plural

from driver.farm.device_messages import (
    Confirmed,
    Done,
    Lent,
    Lost,
    Message,
    NoDevice,
    Order,
    Up,
)
from driver.farm.device_thread import DeviceThread, join_all, rest_seconds
from driver.farm.lease_source import LeaseSource

_ATTEMPTS: Final = 3
"""So often an order is tried at least, however long that takes."""
_BROKEN_SECONDS: Final = 2.0
"""Runs under way may take so long to end once there is no answer to wait for."""


@dataclass(slots=True)
class _Task:
    """An order on its way.

    Attributes:
        attempts: how often it was given to a device.
        strikes: devices under which the farm spoiled it.
        since: when it did so first.
        due: when it may be tried again.
    """

    order: Order
    attempts: int = 0
    strikes: list[str] = field(default_factory=list)
    since: float = 0.0
    due: float = 0.0

    def strike(self, device: str, now: float) -> None:
        """The farm has spoiled a run."""
        self.since = self.since if self.strikes else now
        self.strikes.append(device)
        self.due = now + rest_seconds(len(self.strikes))

    def given(self, number: int) -> Order:
        """The order as a device gets it; another request each time."""
        self.attempts += 1
        request_id = f"{self.order.request_id}-{self.attempts}"
        return replace(self.order, number=number, request_id=request_id)


class JobRunner:
    """Runs orders on leased devices without a tuner behind them.

    Args:
        devices: how many to use at most.
        wait_seconds: for a device, and for a farm that spoils a run again and again.
    """

    def __init__(
        self,
        source: LeaseSource,
        *,
        devices: int,
        wait_seconds: float,
        clock: Clock,
    ) -> None:
        self.devices = devices
        self._source = source
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._left = 0
        self._devices_up = 0

    def waits_for(self) -> str:
        """What is not done yet, and on how many devices, in words; for any thread."""
        return f"{plural(self._left, 'run')} to do; devices: {self._devices_up or 'none just now'}"

    def run(
        self, orders: Sequence[Order], watch: Callable[[Done], None] | None = None
    ) -> list[Done]:
        """The answers, in the order of the orders; a fault of the farm only if that does not end.

        Args:
            watch: sees every answer as it comes; one that turns out to be wrong comes again.

        Raises:
            DeviceLostError: devices were lost under one order too often, and for too long.
            NoDeviceError: no device is left.
            Exception: whatever a thread died of; a fault of ours.
        """
        messages: queue.SimpleQueue[Message | Exception] = queue.SimpleQueue()
        threads = [
            DeviceThread(
                slot,
                self._source,
                wait_seconds=self._wait_seconds,
                report=messages.put,
                clock=self._clock,
            )
            for slot in range(min(self.devices, len(orders)))
        ]
        close_seconds = _BROKEN_SECONDS
        try:
            done = self._collect(orders, threads, messages, watch or (lambda _: None))
            close_seconds = max((o.job.limit_seconds for o in orders), default=0.0)
        finally:
            for thread in threads:
                thread.close()
            join_all(threads, close_seconds, self._clock)
        return done

    def _collect(
        self,
        orders: Sequence[Order],
        threads: Sequence[DeviceThread],
        messages: queue.SimpleQueue[Message | Exception],
        watch: Callable[[Done], None],
    ) -> list[Done]:
        tasks = [_Task(order) for order in orders]
        waiting = list(range(len(orders)))
        given: dict[int, int] = {}
        answers: dict[int, Done] = {}
        unsure: dict[int, list[int]] = {}
        asked: set[int] = set()
        idle: dict[int, Lease] = {}
        ups: dict[int, Lease] = {}
        empty: set[int] = set()
        while len(answers) < len(orders) or unsure:
            if len(answers) == len(orders):
                for slot in unsure.keys() - asked:
                    threads[slot].confirm(ups[slot])
                asked.update(unsure)
            self._left, self._devices_up = len(orders) - len(answers), len(idle) + len(given)
            match message := self._heard(messages, [tasks[n] for n in waiting] if idle else []):
                case Up():
                    idle[message.slot] = ups[message.slot] = message.lease
                    empty.discard(message.slot)
                case Confirmed():
                    unsure.pop(message.slot, None)
                case Done(number=number):
                    given.pop(message.slot)
                    idle[message.slot] = ups[message.slot]
                    asked.discard(message.slot)
                    if message.is_spoiled and self._again(
                        tasks[number - 1],
                        message.device,
                        waits=not message.is_implausible,
                    ):
                        waiting.insert(0, number - 1)
                    else:
                        answers[number - 1] = message
                        unsure.setdefault(message.slot, []).append(number - 1)
                        watch(message)
                    if not message.unchecked:
                        unsure.pop(message.slot, None)
                case Lost(number=number, why=why):
                    idle.pop(message.slot, None)
                    asked.discard(message.slot)
                    held = unsure.pop(message.slot, [])
                    doubted = held if message.suspect else []
                    for index in [*doubted, *([number - 1] if number else [])]:
                        answers.pop(index, None)
                        if not self._again(tasks[index], message.device):
                            times = len(tasks[index].strikes)
                            raise DeviceLostError(f"devices were lost {times} times: {why}")
                    waiting = doubted + _back(given, message.slot) + waiting
                case Lent():
                    idle.pop(message.slot, None)
                    unsure.pop(message.slot, None)
                    waiting = _back(given, message.slot) + waiting
                case Exception():
                    raise message
                case NoDevice(error=error):
                    empty.add(message.slot)
                    if len(empty) == len(threads):
                        raise error
            now = self._clock.seconds()
            for index in [n for n in waiting if tasks[n].due <= now][: len(idle)]:
                waiting.remove(index)
                slot = _fittest(idle, tasks[index])
                given[slot] = index
                threads[slot].put(idle.pop(slot), tasks[index].given(index + 1))
        return [answers[index] for index in range(len(orders))]

    def _heard(
        self, messages: queue.SimpleQueue[Message | Exception], pausing: Sequence[_Task]
    ) -> Message | Exception | None:
        """The next message; None when one of those that pause is to be tried again."""
        due = min((task.due for task in pausing), default=None)
        if due is None:
            return messages.get()
        with contextlib.suppress(queue.Empty):
            return messages.get(timeout=max(0.0, due - self._clock.seconds()))
        return None

    def _again(self, task: _Task, device: str, *, waits: bool = True) -> bool:
        """Whether what the farm has spoiled now is worth another try.

        Args:
            task: what is to be done.
            device: that spoiled it.
            waits: whether it may get better by waiting.
        """
        now = self._clock.seconds()
        task.strike(device, now)
        waits = waits and now - task.since < self._wait_seconds
        return len(task.strikes) < _ATTEMPTS or waits


def _fittest(idle: Mapping[int, Lease], task: _Task) -> int:
    """A slot whose device has not failed an order; the one that did so least, if all have."""
    return min(idle, key=lambda slot: task.strikes.count(idle[slot].device.name))


def _back(given: dict[int, int], slot: int) -> list[int]:
    """The order that a slot was given and has not answered."""
    return [given.pop(slot)] if slot in given else []
