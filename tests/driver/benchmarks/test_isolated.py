"""Tasks in processes of their own: results in order, a crash is one task's result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from kit.farm.real_farm import gone

from driver.benchmarks.isolated import Crashed, isolated


def half(number: int) -> int:
    if number == 3:
        os._exit(7)
    return number // 2


def test_results_come_in_order_and_a_crash_is_one_of_them() -> None:
    found = list(isolated(half, [8, 3, 4], jobs=2))
    assert found == [4, Crashed(), 2]
    assert "without a result" in Crashed().why


ENDLESS = """
from driver.benchmarks.isolated import isolated
from test_isolated import never_end

if __name__ == "__main__":
    list(isolated(never_end, [0], jobs=1))
"""


def never_end(_: int) -> None:
    print(os.getpid(), flush=True)
    signal.pause()


def test_a_task_ends_with_whoever_waits_for_it() -> None:
    beside = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    words = [sys.executable, "-c", ENDLESS]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=beside) as owner:
        assert owner.stdout is not None
        task = int(owner.stdout.readline())
        owner.kill()
        assert gone([task])
