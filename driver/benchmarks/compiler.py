"""`tilefarm bench compiler`: from trace to shared object, by stage, in series and in parallel."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any, Final

import numpy as np
from tilefarm.artifact import CompileJob
from tilefarm.plural import plural
from tilefarm.target import Target

from compile_worker.machines.known import MACHINES
from compile_worker.space import generate
from driver.benchmarks.command_line import tell
from driver.benchmarks.compiler_stages import LayerFigures, layer_figures, processor_seconds
from driver.benchmarks.compiler_workers import WorkerMemory, rate, worker_memory
from driver.commands.options.shared import add_number, add_seed, add_target
from driver.environment import machine
from driver.program.vta.layers import RESNET18, Convolution, LayerVariant
from driver.report.terminal.text_table import text_table
from driver.targets import accelerated_target
from tuner.sampler import Sampler

POINTS: Final = 16
COMPILES: Final = 1000

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    add_number(parser, "points", "a layer", default=POINTS)
    add_number(parser, "compiles", "of the worker whose memory is read", default=COMPILES)
    add_seed(parser, "of the points")
    add_target(parser)
    option("--ray", action="store_true", help="candidates a second on Ray, not on our processes")
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    jobs = candidates(accelerated_target(args.target), args.points, args.seed)
    layers = [
        layer_figures(name, some, processor_seconds, time.perf_counter)
        for name, some in jobs.items()
    ]
    mixed = [job for some in zip(*jobs.values(), strict=True) for job in some]
    rates = {workers: rate(mixed, workers, on_ray=args.ray) for workers in (1, 2)}
    memory = worker_memory(mixed, args.compiles)
    lines = [f"machine  {machine()}; {plural(args.points, 'candidate')} a layer"]
    lines += tables(layers, rates, memory)
    tell(args, lines, lambda: {"machine": machine(), **document(layers, rates, memory)})
    return 0


def candidates(
    target: Target, points: int, seed: int, layers: Mapping[str, Convolution] = RESNET18
) -> dict[str, list[CompileJob]]:
    """Random valid schedules of every layer; the same arguments, the same ones."""
    return {name: list(_schedules(layer, target, points, seed)) for name, layer in layers.items()}


def _schedules(layer: Convolution, target: Target, points: int, seed: int) -> Iterator[CompileJob]:
    workload = layer.workload(target, LayerVariant(bias=True))
    made = generate(workload, target)
    drawn = Sampler(made.space).sample(points, np.random.default_rng(seed))
    for at in range(points):  # a small space has fewer
        point = drawn[at % len(drawn)]
        yield CompileJob(workload=workload, trace=made.trace(point), target=target)


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
    names = [step.name for step in MACHINES["vta"].passes]
    passes = {name: median(each.stages[name] for each in layers) for name in names}
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
