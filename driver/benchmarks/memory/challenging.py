"""The challenging suite of google/minimalloc: eleven files in which real compilers got stuck."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tilefarm.errors import DataError

from driver.benchmarks.figures import Figure
from driver.memory.allocate import Allocation, allocate
from driver.memory.minimalloc_csv import read_minimalloc

CAPACITY_NBYTES: Final = 1_048_576
PUBLISHED_SECONDS: Final[Mapping[str, float]] = {
    "A": 4.910,
    "B": 3.661,
    "C": 0.637,
    "D": 2.674,
    "E": 3.717,
    "F": 5.358,
    "G": 1.181,
    "H": 1.808,
    "I": 3.908,
    "J": 0.883,
    "K": 0.628,
}
"""What MiniMalloc took by its author's slides (in its repository); other solvers gave up."""

_GOAL_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 60.0


def figures(folder: Path, clock: Callable[[], float]) -> list[Figure]:
    """Each file's processor seconds beside MiniMalloc's, and all together.

    Raises:
        DataError: a file is missing or cannot be read.
    """
    found = []
    solved, seconds, nodes = 0, 0.0, 0
    for name, published in PUBLISHED_SECONDS.items():
        path = folder / f"{name}.{CAPACITY_NBYTES}.csv"
        if not path.is_file():
            raise DataError(f"no {path}", "--files FOLDER with the suite of google/minimalloc")
        intervals = [row.interval for row in read_minimalloc(path)]
        began = clock()
        answer = allocate(intervals, capacity_nbytes=CAPACITY_NBYTES, seconds=_PATIENCE_SECONDS)
        taken = clock() - began
        is_solved = isinstance(answer, Allocation)
        how = "" if is_solved else "UNSOLVED, "
        told = f"{name}: {how}{answer.nodes} nodes; MiniMalloc {published:g} s"
        found.append(Figure(name=told, value=taken, unit="s"))
        solved, seconds, nodes = solved + is_solved, seconds + taken, nodes + answer.nodes
    count = len(PUBLISHED_SECONDS)
    total = f"all together; MiniMalloc {sum(PUBLISHED_SECONDS.values()):.1f} s"
    return [
        *found,
        Figure(name="solved", value=solved, unit="files", goal=count, more_is_better=True),
        Figure(name="nodes", value=nodes, unit=""),
        Figure(name=total, value=seconds, unit="s", goal=_GOAL_SECONDS),
    ]
