"""The Ray side of compiling: stateless batches, so that a crash costs no more than one of them.

Driver and workers use Ray's own transport; everything that crosses it is a plain record. Ray never
repeats a batch: the driver owns retries, finds the job that kills a worker, and recycles workers
before LLVM's leak matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import metadata
from typing import Final

import ray
from tilefarm.code import code_digest

from compile_worker.worker import Job, Result, compile_all, prepare_process

BATCHES_PER_WORKER: Final = 100


def _compile_batch(jobs: Sequence[Job]) -> Iterator[list[Result] | None]:
    """A word that it has begun, for it may have waited long; then `compile_all`."""
    yield None
    _prepare_once()
    yield compile_all(jobs)


@cache
def _prepare_once() -> None:
    prepare_process()


compile_batch = ray.remote(
    num_cpus=1,
    max_calls=BATCHES_PER_WORKER,
    max_retries=0,
    retry_exceptions=False,
    num_returns="streaming",
)(_compile_batch)
"""As a Ray task: `compile_batch.remote(jobs)` gives a generator, of None and then the results."""


def installed() -> dict[str, str]:
    """What decides the kernels that this machine would compile: our code, and its libraries."""
    libraries = {name: metadata.version(name) for name in ("llvmlite", "numpy")}
    return {"code": code_digest("compile_worker", "tilefarm").short, **libraries}


installed_there = ray.remote(num_cpus=0, max_retries=0)(installed)
"""`installed` as a Ray task."""
