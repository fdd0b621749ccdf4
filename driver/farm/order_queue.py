"""What a device thread is to do, in the order in which it was put; runs are taken in handfuls."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Sequence

from driver.farm.device_messages import Confirm, Order

_Put = tuple[str, Order | Confirm]


class OrderQueue:
    """Filled by one thread, emptied by another. What was put for an ended lease is forgotten."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[_Put | None] = queue.SimpleQueue()
        self._ahead: deque[_Put | None] = deque()
        self._taking = False

    def put(self, lease_id: str, what: Order | Confirm) -> None:
        """Queue it behind all that is there."""
        self._queue.put((lease_id, what))

    def put_back(self, lease_id: str, orders: Sequence[Order]) -> None:
        """Queue what was taken and not done before all that is there; for the thread that takes."""
        self._ahead.extendleft((lease_id, order) for order in reversed(orders))

    @property
    def is_awaited(self) -> bool:
        """Whether its taker waits because there is nothing; for any thread."""
        return self._taking and self._queue.empty()

    def close(self) -> None:
        """Put the end behind all that is there."""
        self._queue.put(None)

    def take(
        self, lease_id: str, most: int, *, within_seconds: float
    ) -> Sequence[Order] | Confirm | None:
        """So many orders at most, as far as they are there, or a `Confirm`, or None: the end.

        No orders if nothing comes in time; one that is to be alone comes alone.
        """
        orders: list[Order] = []
        while len(orders) < most and not (orders and orders[0].alone):
            try:
                put = self._next(0.0 if orders else within_seconds)
            except queue.Empty:
                break
            if put is not None and put[0] != lease_id:
                continue
            what = put and put[1]
            if orders and not (isinstance(what, Order) and not what.alone):
                self._ahead.appendleft(put)
                break
            if not isinstance(what, Order):
                return what
            orders.append(what)
        return orders

    def _next(self, within_seconds: float) -> _Put | None:
        if self._ahead:
            return self._ahead.popleft()
        if not within_seconds:
            return self._queue.get_nowait()
        self._taking = True
        try:
            return self._queue.get(timeout=within_seconds)
        finally:
            self._taking = False
