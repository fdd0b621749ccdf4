"""What a device's thread takes from its queue, and in which order."""

from __future__ import annotations

from dataclasses import replace

from tilefarm.digest import Digest
from tilefarm.measurement import RunJob

from driver.farm.device_messages import Confirm, Order
from driver.farm.order_queue import OrderQueue

JOB = RunJob(artifact=Digest.of(b"code"), entry="kernel", buffers=())


def order(number: int, *, alone: bool = False) -> Order:
    return Order(number=number, job=JOB, blobs={}, request_id=f"r{number}", alone=alone)


def taken(queue: OrderQueue, most: int = 4, lease: str = "l1") -> list[int] | Confirm | None:
    """Numbers of the orders that come next."""
    what = queue.take(lease, most, within_seconds=0.01)
    return what if what is None or isinstance(what, Confirm) else [order.number for order in what]


def filled(*orders: Order, lease: str = "l1") -> OrderQueue:
    queue = OrderQueue()
    for each in orders:
        queue.put(lease, each)
    return queue


def test_as_many_are_taken_as_are_wanted_and_there() -> None:
    queue = filled(*map(order, range(1, 7)))
    assert [taken(queue), taken(queue), taken(queue)] == [[1, 2, 3, 4], [5, 6], []]


def test_the_end_comes_after_what_was_put_before() -> None:
    queue = filled(order(1))
    queue.close()
    assert [taken(queue), taken(queue)] == [[1], None]


def test_a_confirmation_parts_the_orders_around_it() -> None:
    queue = filled(order(1), order(2))
    queue.put("l1", Confirm("d"))
    queue.put("l1", order(3))
    assert [taken(queue) for _ in range(3)] == [[1, 2], Confirm("d"), [3]]


def test_who_is_to_be_alone_is() -> None:
    queue = filled(order(1), order(2, alone=True), order(3, alone=True), order(4), order(5))
    assert [taken(queue) for _ in range(4)] == [[1], [2], [3], [4, 5]]


def test_what_is_put_back_comes_first_and_in_order() -> None:
    queue = filled(*map(order, range(1, 6)))
    whole = queue.take("l1", 4, within_seconds=0.01)
    assert isinstance(whole, list)
    queue.put_back("l1", whole[1:])
    assert [taken(queue, 2), taken(queue, 2)] == [[2, 3], [4, 5]]


def test_what_was_put_for_another_lease_is_forgotten() -> None:
    queue = filled(order(1), order(2))
    queue.put("l2", order(3))
    queue.put_back("l1", [replace(order(9))])
    assert taken(queue, lease="l2") == [3]
    queue.close()
    assert taken(queue, lease="l2") is None
