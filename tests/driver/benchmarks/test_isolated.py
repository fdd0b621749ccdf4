"""Tasks in processes of their own: results in order, a crash is one task's result."""

from __future__ import annotations

import os

from driver.benchmarks.isolated import Crashed, isolated


def half(number: int) -> int:
    if number == 3:
        os._exit(7)
    return number // 2


def test_results_come_in_order_and_a_crash_is_one_of_them() -> None:
    found = list(isolated(half, [8, 3, 4], jobs=2))
    assert found == [4, Crashed(), 2]
    assert "without a result" in Crashed().why
