"""A few runs on whatever devices there are, each until it is answered: a campaign without a tuner.

What the farm has spoiled as often as a campaign lets it is done again after a pause that grows: a
whole search has come before these runs, and most of what befalls a farm is over within a minute.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from tilefarm.clock import Clock
from tilefarm.errors import DeviceLostError
from tilefarm.measurement import RunFailure, Status, is_spoiled
from tilefarm.plural import plural

from driver.campaign.campaign import Campaign, WorkLimits
from driver.campaign.commands import Command, Dispatch, EndCampaign, Tell
from driver.campaign.device_slots import BROKEN_SECONDS, DeviceSlots
from driver.campaign.events import Event, JobId, Outcome
from driver.campaign.step import step
from driver.farm.device_messages import Confirm, Message, Order, RunEnded
from driver.farm.device_thread import rest_seconds
from driver.farm.lease_source import LeaseSource

_ONE_EACH: Final = WorkLimits(prefetch_depth=1, run_limit=1)
"""Nobody proposes while these run, so a device that waits for its next one costs little, and one
that is lost or lent takes one with it."""


class JobRunner:
    """Runs orders on leased devices without a tuner behind them.

    Args:
        devices: how many to use at most.
        wait_seconds: for a device, and for a farm that spoils a run again and again.
    """

    def __init__(
        self, source: LeaseSource, *, devices: int, wait_seconds: float, clock: Clock
    ) -> None:
        self.devices = devices
        self._source = source
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._runs: _Runs | None = None

    def waits_for(self) -> str:
        """What is not done yet, and on which devices, in words; for any thread."""
        return self._runs.in_words if self._runs else "runs to begin"

    def run(
        self,
        orders: Sequence[Order],
        watch: Callable[[RunEnded], None] | None = None,
        *,
        at_most: int | None = None,
    ) -> list[RunEnded]:
        """The answers, in the order of the orders; a fault of the farm only if that does not end.

        Args:
            watch: sees every answer as it comes, its number that of its order: 1, 2, 3 …; one that
                its device does not confirm comes again.
            at_most: so many devices at a time; None: as many as the runner has.

        Raises:
            DeviceLostError: devices were lost under one order too often, and for too long.
            NoDeviceError: no device is left.
            Exception: whatever a thread died of; a fault of ours.
        """
        messages: queue.SimpleQueue[Message | Exception] = queue.SimpleQueue()
        slots = DeviceSlots(
            self._source,
            devices=min(self.devices, len(orders), at_most or len(orders)),
            wait_seconds=self._wait_seconds,
            report=messages.put,
            clock=self._clock,
        )
        self._runs = runs = _Runs(orders, slots, self._wait_seconds, self._clock, watch)
        close_seconds = BROKEN_SECONDS
        slots.open()
        try:
            while not runs.is_over:
                with contextlib.suppress(queue.Empty):
                    runs.hear(messages.get(timeout=runs.pause_seconds))
                runs.resume()
            close_seconds = max((o.job.limit_seconds for o in orders), default=0.0)
        finally:
            slots.close(close_seconds)
        return runs.answers()


class _Runs:
    """Orders as the jobs of a campaign; an order that is tried again is another job.

    Its campaign is dry, as nothing is proposed, and has an unanswered question all the time, as it
    is known here when it is over.
    """

    def __init__(
        self,
        orders: Sequence[Order],
        slots: DeviceSlots,
        wait_seconds: float,
        clock: Clock,
        watch: Callable[[RunEnded], None] | None,
    ) -> None:
        self._orders = orders
        self._slots = slots
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._watch = watch
        self._campaign = Campaign(limits=_ONE_EACH, dry=True, asking=True)
        self._places: dict[JobId, int] = {}
        self._requests = [0] * len(orders)
        self._given_up: dict[int, list[float]] = {}
        self._due: dict[int, float] = {}
        self._ended: dict[int, RunEnded] = {}
        self._left = set(range(len(orders)))
        self._begin(range(len(orders)))

    @property
    def is_over(self) -> bool:
        """Whether every order has an answer that its device has confirmed."""
        return not self._left

    @property
    def in_words(self) -> str:
        """What is not done yet, and on which devices."""
        devices = ", ".join(self._campaign.devices) or "none just now"
        return f"{plural(len(self._left), 'run')} to do; devices: {devices}"

    @property
    def pause_seconds(self) -> float | None:
        """Until something is tried again; None: nothing waits for that."""
        due = min(self._due.values(), default=None)
        return None if due is None else max(0.0, due - self._clock.seconds())

    def answers(self) -> list[RunEnded]:
        """In the order of the orders."""
        return [self._ended[place] for place in range(len(self._orders))]

    def hear(self, message: Message | Exception) -> None:
        """A thread says something, or has died."""
        if isinstance(message, Exception):
            raise message
        if isinstance(message, RunEnded):
            place = self._places[message.number]
            self._ended[place] = replace(message, number=place + 1)
            if self._watch and not message.is_spoiled:
                self._watch(self._ended[place])
        self._feed(*self._slots.heard(message))

    def resume(self) -> None:
        """Try again what is due."""
        now = self._clock.seconds()
        if due := [place for place, seconds in self._due.items() if seconds <= now]:
            for place in due:
                del self._due[place]
            self._begin(due)

    def _begin(self, places: Sequence[int]) -> None:
        last = self._campaign.last_job
        self._campaign = self._campaign.with_built(len(places))
        self._places.update(enumerate(places, last + 1))
        self._feed()

    def _feed(self, *happened: Event) -> None:
        self._campaign, commands = step(self._campaign, *happened)
        for command in commands:
            self._obey(command)

    def _obey(self, command: Command) -> None:
        match command:
            case Dispatch(device, number, alone):
                self._slots.put(device, self._order(number, alone=alone))
            case Confirm(device):
                self._slots.confirm(device)
            case Tell(number, outcome):
                self._told(self._places[number], outcome)
            case EndCampaign():
                assert self._slots.error is not None
                raise self._slots.error

    def _order(self, number: JobId, *, alone: bool) -> Order:
        """The order as a device gets it; another request each time."""
        place = self._places[number]
        self._requests[place] += 1
        order = self._orders[place]
        request_id = f"{order.request_id}-{self._requests[place]}"
        return replace(order, number=number, request_id=request_id, alone=alone)

    def _told(self, place: int, outcome: Outcome) -> None:
        """An order has its answer, unless the farm has spoiled it and may be better later."""
        if isinstance(outcome, RunFailure) and is_spoiled(outcome):
            if outcome.status is not Status.IMPLAUSIBLE and self._pauses(place):
                return
            if outcome.status is Status.DEVICE_LOST:
                times = _ONE_EACH.attempts * len(self._given_up[place])
                raise DeviceLostError(f"devices were lost {times} times: {outcome.why}")
        self._left.discard(place)

    def _pauses(self, place: int) -> bool:
        """Have an order that was given up tried again, if the farm's time is not up until then."""
        now = self._clock.seconds()
        times = self._given_up.setdefault(place, [])
        times.append(now)
        due = now + rest_seconds(_ONE_EACH.attempts * len(times))
        if due - times[0] >= self._wait_seconds:
            return False
        self._due[place] = due
        return True
