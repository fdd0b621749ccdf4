"""A Ray host whose workers misbehave as the process of `kit.children.bad_compiler` does."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from kit.children.bad_compiler import misbehave

from compile_worker.worker import Job, Result, compile_all
from driver.farm.compiling import ray_child

_start = ray_child.start_ray


def start(folder: Path, workers: int) -> None:
    """Ray as ever, with another compiler; it reads its environment as it is imported."""
    _start(folder, workers)
    import ray

    from compile_worker import tasks

    tasks.compile_batch = ray.remote(num_cpus=1, max_retries=0, num_returns="streaming")(
        compile_batch
    )


def compile_batch(jobs: Sequence[Job]) -> Iterator[list[Result] | None]:
    yield None
    yield compile_all(jobs, watch=misbehave)


if __name__ == "__main__":
    ray_child.start_ray = start
    ray_child.main(*sys.argv[1:])
