"""Tasks in processes of their own: what one leaks ends with it, and a crash is its result.

They end with whoever waits for them, however that one ends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TypeVar

from tilefarm.interpreter import shield_children

from driver.farm.compiling.orphan_reaper import dying_with_its_thread

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Crashed:
    """The process of a task ended before the task did."""

    why: str = "the process ended without a result"


def isolated(
    work: Callable[[Task], Result], tasks: Sequence[Task], *, jobs: int
) -> Iterator[Result | Crashed]:
    """Do every task in a fresh process, at most `jobs` at once; results in the order of the tasks.

    Args:
        work: a function of a module; it, tasks and results travel between processes.
    """
    with ThreadPoolExecutor(jobs) as threads:
        yield from threads.map(lambda task: _alone(work, task), tasks)


def _alone(work: Callable[[Task], Result], task: Task) -> Result | Crashed:
    shield_children()
    spawning = get_context("spawn")
    with ProcessPoolExecutor(
        1, mp_context=spawning, initializer=_die_with, initargs=(os.getpid(),)
    ) as process:
        try:
            return process.submit(work, task).result()
        except BrokenProcessPool:
            return Crashed()


def _die_with(owner: int) -> None:
    dying_with_its_thread(owner)()
