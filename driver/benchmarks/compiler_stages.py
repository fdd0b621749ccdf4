"""How long a compile takes, stage by stage, in this process."""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

from tilefarm.artifact import CompileJob

from compile_worker.codegen.link import link
from compile_worker.codegen.machine import object_code
from compile_worker.compiler import lowered
from compile_worker.emit import kernel_text
from compile_worker.ir.func import Func
from compile_worker.machines.known import MACHINES
from compile_worker.machines.vta.codegen.runtime_abi import RUNTIME
from compile_worker.machines.vta.features import features_of
from compile_worker.worker import prepare_process

Seconds: TypeAlias = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFigures:
    """One layer: medians over its candidates.

    Attributes:
        seconds: processor seconds of one candidate, all stages together.
        most_seconds: of the slowest.
        wall_seconds: what the clock on the wall says; more where others use the machine.
        stages: processor seconds by stage, every pass by itself.
        nbytes: of the shared object.
    """

    name: str
    candidates: int
    seconds: float
    most_seconds: float
    wall_seconds: float
    stages: Mapping[str, float]
    nbytes: float

    def group(self, name: str) -> float:
        """Seconds of a column of the table: one stage, or all passes."""
        if name == "passes":
            return sum(self.stages[step.name] for step in MACHINES["vta"].passes)
        return self.stages[name]


def layer_figures(
    name: str, jobs: Sequence[CompileJob], processor: Seconds, wall: Seconds
) -> LayerFigures:
    """Compile every job in this process, one after the other."""
    prepare_process()
    rows, walls, sizes = [], [], []
    for job in jobs:
        began = wall()
        stages, nbytes = _stages(job, processor)
        walls.append(wall() - began)
        rows.append(stages)
        sizes.append(nbytes)
    totals = [sum(row.values()) for row in rows]
    return LayerFigures(
        name=name,
        candidates=len(jobs),
        seconds=median(totals),
        most_seconds=max(totals),
        wall_seconds=median(walls),
        stages={stage: median(row[stage] for row in rows) for stage in rows[0]},
        nbytes=median(sizes),
    )


def _stages(job: CompileJob, seconds: Seconds) -> tuple[dict[str, float], int]:
    """Seconds of each stage of one compile, in order, and the size of what it makes."""
    taken: dict[str, float] = {}
    began = seconds()

    def note(stage: str) -> None:
        nonlocal began
        now = seconds()
        taken[stage] = now - began
        began = now

    def watch(stage: str, func: Func) -> None:
        del func
        note(stage)

    func = lowered(job, watch=watch)
    text = f"{RUNTIME.declarations}\n{kernel_text(func, job.symbol, job.target)}"
    note("text")
    code = object_code(text, job.target.host, fast_code=False)
    note("llvm")
    shared = link(code, job.target.host, RUNTIME.functions)
    note("link")
    features_of(func, job.target)
    note("features")
    return taken, len(shared)


def processor_seconds() -> float:
    """Processor time of this process and of the children that it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
