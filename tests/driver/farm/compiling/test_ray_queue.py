"""How long a run stands in Ray's queue: told in words, bounded while nothing of it moves."""

from __future__ import annotations

from contextlib import ExitStack

from kit.manual_clock import ManualClock

from driver.farm.compiling.ray_queue import RayQueue


def test_what_waits_is_told_once_it_is_worth_it() -> None:
    clock = ManualClock(1000.0)
    queue = RayQueue(60.0, clock=clock)
    assert queue.waits_for == ""
    with ExitStack() as batches:
        first = batches.enter_context(queue.batch())
        clock.advance(1.0)
        assert queue.waits_for == "", "every batch waits a moment"
        second = batches.enter_context(queue.batch())
        clock.advance(6.0)
        assert queue.waits_for == "2 batches in its queue, the first for 7 s"
        queue.begin(first)
        assert queue.waits_for == "1 batch in its queue, the first for 6 s"
        queue.begin(second)
        assert queue.waits_for == ""
    assert queue.waits_for == ""


def test_patience_is_for_a_run_that_stands_still() -> None:
    clock = ManualClock(1000.0)
    queue = RayQueue(60.0, clock=clock)
    with queue.batch():
        clock.advance(50.0)
        assert queue.patience_left_seconds == 10.0
        with queue.batch() as other:
            clock.advance(5.0)
            assert queue.patience_left_seconds == 5.0, "who comes later changes nothing"
            queue.begin(other)
            clock.advance(500.0)
            assert queue.patience_left_seconds == 60.0, "one is compiled"
        clock.advance(7.0)
        assert queue.patience_left_seconds == 53.0, "since the last one ended"
        clock.advance(60.0)
        assert queue.patience_left_seconds < 0
    clock.advance(1000.0)
    with queue.batch():
        clock.advance(1.0)
        assert queue.patience_left_seconds == 59.0, "while nothing waited nothing stood still"


def test_a_batch_that_leaves_the_queue_unbegun_is_no_progress() -> None:
    clock = ManualClock(1000.0)
    queue = RayQueue(60.0, clock=clock)
    with queue.batch():
        clock.advance(40.0)
        with queue.batch():
            clock.advance(5.0)
        assert queue.patience_left_seconds == 15.0
