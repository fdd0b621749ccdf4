"""`tilefarm bench compiler`: from trace to shared object, by stage, in series and in parallel."""

from __future__ import annotations

import argparse
import json
import os
import queue
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeAlias

import numpy as np
from tilefarm.artifact import Artifact, CompileJob
from tilefarm.errors import InfraError, SettingsError
from tilefarm.target import Target

from compile_worker.codegen.emit import Kernel, kernel_text
from compile_worker.codegen.link import link
from compile_worker.codegen.machine import object_code
from compile_worker.codegen.runtime_abi import declarations
from compile_worker.compiler import lowered
from compile_worker.features import features_of
from compile_worker.ir.func import Func
from compile_worker.passes import LOWERING
from compile_worker.space import generate
from compile_worker.worker import prepare_process
from driver.compiling.executor import Build, Workers
from driver.compiling.places import Place, ProcessPlace
from driver.steps.machine import machine
from driver.targets import usable_target
from driver.terminal.text_table import text_table
from driver.vta.layers import RESNET18, Convolution, Epilogue
from tuner.sampler import Sampler

POINTS: Final = 16
COMPILES: Final = 1000

_BATCH: Final = 16
_TIMEOUT_SECONDS: Final = 60.0
_READINGS: Final = 10
_SLOWEST: Final = 6

_GROUPS: Final = ("nest", "scheduled", "passes", "text", "llvm", "link", "features")

_EPILOG: Final = """\
examples:
  tilefarm bench compiler
  tilefarm bench compiler --points 50 --json
  tilefarm bench compiler --compiles 10000        the memory of a worker that compiles so many
  tilefarm bench compiler --ray                   candidates a second on Ray

The candidates are valid points of ResNet-18's convolutions, drawn at random; each is compiled
once. Times are processor time, the linker's included. nest: the workload's loops. scheduled: its
trace replayed. passes: lowering. text: LLVM text. llvm: its machine code. link: the shared object.
"""

Seconds: TypeAlias = Callable[[], float]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("--points", type=int, default=POINTS, metavar="N", help=f"a layer (default: {POINTS})")
    option(
        "--compiles",
        type=int,
        default=COMPILES,
        metavar="N",
        help=f"of the worker whose memory is read (default: {COMPILES})",
    )
    option("--seed", type=int, default=0, metavar="N", help="of the points (default: 0)")
    option("--target", default="sim", metavar="NAME|FILE.json", help="(default: sim)")
    option("--ray", action="store_true", help="candidates a second on Ray, not on our processes")
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    if min(args.points, args.compiles) < 1:
        raise SettingsError("--points and --compiles must be at least 1")
    jobs = candidates(usable_target(args.target), args.points, args.seed)
    layers = [
        layer_figures(name, some, processor_seconds, time.perf_counter)
        for name, some in jobs.items()
    ]
    mixed = [job for some in zip(*jobs.values(), strict=True) for job in some]
    rates = {workers: rate(mixed, workers, on_ray=args.ray) for workers in (1, 2)}
    memory = worker_memory(mixed, args.compiles)
    if args.json:
        print(json.dumps({"machine": machine(), **document(layers, rates, memory)}))
        return 0
    print(f"machine  {machine()}; {args.points} candidates a layer")
    for line in tables(layers, rates, memory):
        print(line)
    return 0


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
            return sum(self.stages[step.name] for step in LOWERING)
        return self.stages[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMemory:
    """What one worker process holds as it compiles: (compiles so far, resident bytes)."""

    readings: tuple[tuple[int, int], ...]

    @property
    def growth_nbytes(self) -> float:
        """Bytes that a compile leaves behind, over the second half."""
        half = self.readings[len(self.readings) // 2 :]
        (first, low), (last, high) = half[0], half[-1]
        return (high - low) / max(1, last - first)


def candidates(
    target: Target, points: int, seed: int, layers: Mapping[str, Convolution] = RESNET18
) -> dict[str, list[CompileJob]]:
    """Random valid schedules of every layer; the same arguments, the same ones."""
    return {name: list(_schedules(layer, target, points, seed)) for name, layer in layers.items()}


def _schedules(layer: Convolution, target: Target, points: int, seed: int) -> Iterator[CompileJob]:
    workload = layer.workload(target, Epilogue(bias=True))
    made = generate(workload, target)
    drawn = Sampler(made.space).sample(points, np.random.default_rng(seed))
    for at in range(points):  # a small space has fewer
        point = drawn[at % len(drawn)]
        yield CompileJob(workload=workload, trace=made.trace(point), target=target)


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
    kernel = Kernel(job.symbol, func)
    text = f"{declarations()}\n{kernel_text(kernel, job.target)}"
    note("text")
    code = object_code(text, job.target.host, fast_code=not kernel.on_accelerator)
    note("llvm")
    shared = link(code, job.target.host)
    note("link")
    features_of(func, job.target)
    note("features")
    return taken, len(shared)


def rate(jobs: Sequence[CompileJob], workers: int, *, on_ray: bool) -> float:
    """Candidates a second that so many workers compile, as in a search: in batches, by processes.

    Raises:
        InfraError: one was not compiled.
    """
    with ExitStack() as owned:
        scratch = Path(owned.enter_context(tempfile.TemporaryDirectory(prefix="tf-")))
        executor = Workers(
            _places(owned, scratch, workers, on_ray),
            lambda trail: ProcessPlace(scratch / "log", scratch, trail=trail),
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        owned.callback(executor.close)
        _compile(executor, list(jobs[:_BATCH]) * workers)  # starts the processes
        began = time.perf_counter()
        _compile(executor, jobs)
        return len(jobs) / (time.perf_counter() - began)


def _places(owned: ExitStack, scratch: Path, workers: int, on_ray: bool) -> list[Place]:
    if not on_ray:
        return [ProcessPlace(scratch / "log", scratch) for _ in range(workers)]
    from driver.compiling.workers import RayHost, RayPlace

    host = RayHost(scratch, workers, scratch / "log")
    owned.callback(host.close)
    return [RayPlace(host, slot) for slot in range(workers)]


def _compile(executor: Workers, jobs: Sequence[CompileJob]) -> None:
    """Compile all, and wait for the last."""
    told: queue.SimpleQueue[Build | BaseException] = queue.SimpleQueue()
    for at in range(0, len(jobs), _BATCH):
        executor.submit(list(enumerate(jobs[at : at + _BATCH], at)), told.put)
    for _ in jobs:
        build = told.get()
        if isinstance(build, BaseException):
            raise build
        if not isinstance(build.result, Artifact):
            raise InfraError(f"a candidate does not compile: {build.result.why}", "report it")


def worker_memory(jobs: Sequence[CompileJob], compiles: int) -> WorkerMemory:
    """The resident memory of one process that compiles so many, and is not relieved in between."""
    readings = []
    with tempfile.TemporaryDirectory(prefix="tf-") as folder:
        place = ProcessPlace(Path(folder) / "log", Path(folder), compiles=compiles + _BATCH)
        try:
            done, due = 0, 0
            while done < compiles:
                batch = [
                    jobs[(done + at) % len(jobs)] for at in range(min(_BATCH, compiles - done))
                ]
                place.compile(batch, _TIMEOUT_SECONDS * len(batch))
                done += len(batch)
                if done >= due:
                    readings.append((done, _resident_nbytes(place.pid)))
                    due = done + compiles // _READINGS
            readings.append((done, _resident_nbytes(place.pid)))
        finally:
            place.close()
    return WorkerMemory(readings=tuple(readings))


def _resident_nbytes(pid: int | None) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def processor_seconds() -> float:
    """Processor time of this process and of the children that it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def tables(
    layers: Sequence[LayerFigures], rates: Mapping[int, float], memory: WorkerMemory
) -> Iterator[str]:
    """A row a layer and their medians, the slowest passes, then the rates and the memory."""
    titles = ("ms a candidate", "all", "most", *_GROUPS, "wall", "KiB")
    rows = [
        (
            each.name,
            _ms(each.seconds),
            _ms(each.most_seconds),
            *(_ms(each.group(name)) for name in _GROUPS),
            _ms(each.wall_seconds),
            f"{each.nbytes / 1024:.1f}",
        )
        for each in layers
    ]
    middle = (
        "median",
        _ms(_median_seconds(layers)),
        _ms(max(each.most_seconds for each in layers)),
        *(_ms(median(each.group(name) for each in layers)) for name in _GROUPS),
        _ms(median(each.wall_seconds for each in layers)),
        f"{median(each.nbytes for each in layers) / 1024:.1f}",
    )
    yield from text_table(titles, [*rows, middle])
    passes = {step.name: median(each.stages[step.name] for each in layers) for step in LOWERING}
    slowest = sorted(passes, key=lambda name: -passes[name])[:_SLOWEST]
    yield f"slowest passes  {', '.join(f'{name} {_ms(passes[name])}' for name in slowest)}"
    for workers, found in rates.items():
        yield f"{workers} worker{'s' if workers > 1 else ''}  {found:.1f} candidates a second"
    held = ", ".join(f"{nbytes / 2**20:.0f} at {at}" for at, nbytes in memory.readings)
    yield f"a worker holds, in MiB after so many compiles: {held}"
    yield f"a compile leaves {memory.growth_nbytes:.0f} bytes behind, over the second half"


def document(
    layers: Sequence[LayerFigures], rates: Mapping[int, float], memory: WorkerMemory
) -> dict[str, Any]:
    """Everything as JSON can say it."""
    return {
        "layers": [asdict(each) for each in layers],
        "median_seconds": _median_seconds(layers),
        "candidates_per_second": {str(workers): found for workers, found in rates.items()},
        "worker_nbytes": [list(reading) for reading in memory.readings],
        "growth_nbytes_per_compile": memory.growth_nbytes,
    }


def _median_seconds(layers: Sequence[LayerFigures]) -> float:
    return median(each.seconds for each in layers)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}"
