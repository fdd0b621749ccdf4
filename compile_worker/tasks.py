"""The Ray side of compiling: stateless batches, so that a crash costs no more than one of them.

Driver and workers use Ray's own transport; everything that crosses it is a plain record. Ray never
repeats a batch: the driver owns retries, finds the job that kills a worker, and recycles workers
before LLVM's leak of about 100 KB a compilation matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import ray
from tilefarm.artifact import Artifact, BuildFailure, CompileJob, ProgramJob

from compile_worker.compiler import compile_kernel, compile_program

Job: TypeAlias = CompileJob | ProgramJob
Result: TypeAlias = Artifact | BuildFailure

BATCHES_PER_WORKER: Final = 100


def compile_all(jobs: Sequence[Job]) -> list[Result]:
    """One result for every job, in order."""
    return [
        compile_program(job) if isinstance(job, ProgramJob) else compile_kernel(job) for job in jobs
    ]


compile_batch = ray.remote(
    num_cpus=1, max_calls=BATCHES_PER_WORKER, max_retries=0, retry_exceptions=False
)(compile_all)
"""`compile_all` as a Ray task: `compile_batch.remote(jobs)`."""
