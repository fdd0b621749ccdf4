"""What a process that only compiles does: prepare itself, and take batches."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from tilefarm.artifact import Artifact, BuildFailure, CompileJob, ProgramJob

from compile_worker.compiler import compile_kernel, compile_program
from compile_worker.ir.func import Func
from compile_worker.pipeline import Watcher, look_away
from compile_worker.progress_file import ProgressFile

Job: TypeAlias = CompileJob | ProgramJob
Result: TypeAlias = Artifact | BuildFailure

_COLLECT_AFTER: Final = 20_000
"""Objects that came and stayed; Python's own limit, 700, collects many times in one compile."""


def prepare_process() -> None:
    """Let the collector alone what is loaded: nodes die by their reference counts anyway."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)


def compile_all(
    jobs: Sequence[Job], trail: Path | None = None, *, watch: Watcher = look_away
) -> list[Result]:
    """One result for every job, in order.

    Args:
        jobs: kernels and programs.
        trail: where to write how far a kernel has come, after every step; slow, so for one job.
        watch: sees the function after every step, once the trail tells of it.
    """
    seen = watch
    if trail is not None:
        seen = _both(partial(ProgressFile(trail).write, jobs[0].target), watch)
    return [
        compile_program(job) if isinstance(job, ProgramJob) else compile_kernel(job, watch=seen)
        for job in jobs
    ]


def _both(first: Watcher, second: Watcher) -> Watcher:
    def watch(name: str, func: Func) -> None:
        first(name, func)
        second(name, func)

    return watch
