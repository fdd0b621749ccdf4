"""A Ray host whose one CPU somebody else has until the file `free` is in its folder."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from driver.farm.compiling import ray_child

_start = ray_child.start_ray


def start(folder: Path, workers: int) -> None:
    """Ray as ever, and full before anybody hears that it is up."""
    del workers
    _start(folder, 1)
    import ray

    ray.remote(num_cpus=1)(hold).remote(folder)
    while not (folder / "full").exists():
        time.sleep(0.05)


def hold(folder: Path) -> None:
    """Takes the CPU away from others."""
    (folder / "full").touch()
    while not (folder / "free").exists():
        time.sleep(0.05)


if __name__ == "__main__":
    ray_child.start_ray = start
    argument, folder, form, level, _cluster, *rest = sys.argv[1:]
    ray_child.main(argument, folder, form, level, "", *rest)
