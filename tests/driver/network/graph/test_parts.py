"""Samples in parts: in order, by threads where tensors are large, and the first failure ends it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from driver.network.graph.parts import Arrays, in_parts, samples_at_once, threads_for

INPUTS = {"x": np.arange(7, dtype=np.float32)}


def doubled(part: Arrays) -> dict[str, Any]:
    return {"y": part["x"] * 2}


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_are_in_order_whoever_makes_them(threads: int) -> None:
    sizes: list[int] = []
    found = in_parts(doubled, INPUTS, 4, sizes.append, threads=threads)
    np.testing.assert_array_equal(found["y"], INPUTS["x"] * 2)
    assert sum(sizes) == 7
    assert max(sizes) <= 4 // threads


def test_parts_are_worked_on_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=60)

    def meet(part: Arrays) -> dict[str, Any]:
        both.wait()
        return doubled(part)

    even = {"x": INPUTS["x"][:4]}
    found = in_parts(meet, even, 2, threads=2)
    np.testing.assert_array_equal(found["y"], even["x"] * 2)


def test_numpy_s_settings_hold_in_threads_too() -> None:
    def overflow(part: Arrays) -> dict[str, Any]:
        return {"y": part["x"] * np.float32(3e38)}

    with np.errstate(over="ignore"):
        found = in_parts(overflow, INPUTS, 2, threads=2)
    assert np.isinf(found["y"][-1])


def test_parts_behind_one_that_fails_do_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[float] = []
    is_cancelled = threading.Event()

    def fail_at_first(part: Arrays) -> dict[str, Any]:
        begun.append(float(part["x"][0]))
        if part["x"][0] == 0:
            raise ValueError("no")
        is_cancelled.wait(60)
        return doubled(part)

    def shutdown(pool: ThreadPoolExecutor, *, cancel_futures: bool = False) -> None:
        whole(pool, wait=False, cancel_futures=cancel_futures)
        is_cancelled.set()
        whole(pool)

    whole = ThreadPoolExecutor.shutdown
    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", shutdown)
    with pytest.raises(ValueError, match="no"):
        in_parts(fail_at_first, INPUTS, 2, threads=2)
    assert len(begun) <= 3


def test_threads_are_for_large_tensors() -> None:
    assert threads_for(samples_at_once([(1, 64, 224, 224)])) <= 2
    assert threads_for(samples_at_once([(1, 10)])) == 1
