"""A few runs on whatever devices there are, each until it is answered."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from tilefarm.clock import Clock
from tilefarm.errors import DeviceLostError
from tilefarm.lease import Lease

from driver.farm.device_messages import Done, Lent, Lost, Message, NoDevice, Order, Up
from driver.farm.device_thread import DeviceThread
from driver.farm.lease_source import LeaseSource

_ATTEMPTS: Final = 3


class Errands:
    """Runs orders on leased devices without a tuner behind them.

    Args:
        devices: how many to use at most.
        wait_seconds: for a device.
        watch: sees every answer as it comes.
    """

    def __init__(
        self,
        source: LeaseSource,
        *,
        devices: int,
        wait_seconds: float,
        clock: Clock,
        watch: Callable[[Done], None] | None = None,
    ) -> None:
        self._source = source
        self._devices = devices
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._watch = watch
        self._left = 0
        self._devices_up = 0

    def waits_for(self) -> str:
        """What is not done yet, and on how many devices, in words; for any thread."""
        return f"{self._left} runs to do; devices: {self._devices_up or 'none just now'}"

    def run(self, orders: Sequence[Order]) -> list[Done]:
        """The answers, in the order of the orders.

        Raises:
            DeviceLostError: devices were lost under one order too often.
            NoDeviceError: no device is left.
        """
        messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        threads = [
            DeviceThread(
                slot,
                self._source,
                wait_seconds=self._wait_seconds,
                report=messages.put,
                clock=self._clock,
            )
            for slot in range(min(self._devices, len(orders)))
        ]
        try:
            return self._collect(orders, threads, messages)
        finally:
            for thread in threads:
                thread.close()
            for thread in threads:
                thread.join(max((o.job.timeout_seconds for o in orders), default=0.0))

    def _collect(
        self,
        orders: Sequence[Order],
        threads: Sequence[DeviceThread],
        messages: queue.SimpleQueue[Message],
    ) -> list[Done]:
        waiting = list(range(len(orders)))
        attempts = [0] * len(orders)
        given: dict[int, int] = {}
        answers: dict[int, Done] = {}
        idle: dict[int, Lease] = {}
        ups: dict[int, Lease] = {}
        empty: set[int] = set()
        while len(answers) < len(orders):
            self._left, self._devices_up = len(orders) - len(answers), len(idle) + len(given)
            message = messages.get()
            match message:
                case Up():
                    idle[message.slot] = ups[message.slot] = message.lease
                    empty.discard(message.slot)
                case Done(number=number):
                    answers[number - 1] = message
                    given.pop(message.slot)
                    idle[message.slot] = ups[message.slot]
                    if self._watch is not None:
                        self._watch(message)
                case Lost(number=number, why=why):
                    idle.pop(message.slot, None)
                    if number and attempts[number - 1] >= _ATTEMPTS:
                        raise DeviceLostError(f"devices were lost {_ATTEMPTS} times: {why}")
                    waiting = _back(given, message.slot) + waiting
                case Lent():
                    idle.pop(message.slot, None)
                    for index in (again := _back(given, message.slot)):
                        attempts[index] -= 1
                    waiting = again + waiting
                case NoDevice(error=error):
                    empty.add(message.slot)
                    if len(empty) == len(threads):
                        raise error
            while waiting and idle:
                index = waiting.pop(0)
                attempts[index] += 1
                order = orders[index]
                slot, lease = idle.popitem()
                given[slot] = index
                threads[slot].put(
                    lease,
                    replace(
                        order,
                        number=index + 1,
                        request_id=f"{order.request_id}-{attempts[index]}",
                    ),
                )
        return [answers[index] for index in range(len(orders))]


def _back(given: dict[int, int], slot: int) -> list[int]:
    """The order that a slot was given and has not answered."""
    return [given.pop(slot)] if slot in given else []
