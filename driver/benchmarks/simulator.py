"""`tilefarm bench simulator`: how fast the simulator is on the convolutions of ResNet-18."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeAlias

from tilefarm.errors import InfraError
from tilefarm.plural import plural
from tilefarm.target import TARGETS, Target

from compile_worker.space import generate
from device_server.vta.library.library import VtaLibrary
from device_server.vta.programs.program import Bytes, Program, write_program
from driver.benchmarks.command_line import tell
from driver.commands.options.shared import add_number
from driver.environment import machine
from driver.program.vta.footprint import footprint
from driver.program.vta.layers import RESNET18, RESNET18_COUNTS, Convolution, predicted_best
from driver.program.vta.recording import record_workload

SCALAR: Final = "scalar"
"""The vector path that does one product at a time: what the others are measured against."""

_SLOW_PATHS: Final = ("portable", SCALAR)
_SLOW_RUNS: Final = 3
_SEED: Final = 0
_RUNS: Final = 21


Seconds: TypeAlias = Callable[[], float]
"""Processor time of this process: a simulation is one thread, and others do not count."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_number(parser, "runs", "of each stream", default=_RUNS)


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    runs: int = args.runs
    figures = measure_simulator(TARGETS["sim"], time.process_time, runs=runs)
    lines = [f"machine  {machine()}; processor time, medians of {plural(runs, 'run')}"]
    lines += table(figures)
    tell(args, lines, lambda: {"machine": machine(), **document(figures)})
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFigures:
    """One stream; processor seconds are medians of runs that nothing was remembered for.

    Attributes:
        macs: multiply-accumulates that the stream executes, padding of channels included.
        functional_seconds: results only, by vector path, the scalar loop included.
        both_seconds: results and exact cycles, on the best path.
        extra_nbytes: the library's memory at its peak, beyond the program's own.
    """

    name: str
    instructions: int
    cycles: int
    macs: int
    functional_seconds: Mapping[str, float]
    both_seconds: float
    extra_nbytes: int

    @property
    def model_seconds(self) -> float:
        """The cycle model's share: with cycles less without."""
        best = min(s for path, s in self.functional_seconds.items() if path != SCALAR)
        return max(self.both_seconds - best, 1e-9)

    def gmacs(self, path: str) -> float:
        """Multiply-accumulates a nanosecond on a path."""
        return self.macs / self.functional_seconds[path] / 1e9


def measure_simulator(
    target: Target,
    seconds: Seconds,
    *,
    runs: int,
    layers: Mapping[str, Convolution] = RESNET18,
) -> list[StreamFigures]:
    """Record the streams of the layers and measure each.

    Args:
        seconds: the clock.
        runs: of each stream on each fast path; slow ones run a few times only.

    Raises:
        InfraError: a path computes something else than the stream promises.
    """
    library = VtaLibrary()
    figures = []
    with tempfile.TemporaryDirectory(prefix="tilefarm-bench-") as folder:
        files = []
        for name, layer in layers.items():
            workload = layer.workload(target)
            generated = generate(workload, target)
            trace = generated.trace(predicted_best(generated, _SEED))
            (program,) = record_workload(library, workload, trace, target, seed=_SEED, name=name)
            files.append(Path(folder) / f"{name}.npz")
            write_program(files[-1], program)
            figures.append(_measured(library, program, seconds, runs))
        extra = [footprint(file) for file in files]
    return [replace(f, extra_nbytes=n) for f, n in zip(figures, extra, strict=True)]


def table(figures: Sequence[StreamFigures]) -> Iterator[str]:
    """A row a stream, their sum, and the whole network's convolutions."""
    paths = list(figures[0].functional_seconds)
    best = paths[0]
    titles = ["instructions", "cycles", *(f"{path} GMAC/s" for path in paths)]
    titles += ["Mcycles/s", "both ms", "x scalar", "extra MiB"]
    widths = [max(len(title), 10) for title in titles]

    def row(name: str, cells: Sequence[str]) -> str:
        return f"{name:7}" + "  ".join(c.rjust(w) for c, w in zip(cells, widths, strict=True))

    yield row("stream", titles)
    for f in (*figures, total(figures)):
        yield row(
            f.name,
            [
                str(f.instructions),
                str(f.cycles),
                *(f"{f.gmacs(path):.2f}" for path in paths),
                f"{f.cycles / f.model_seconds / 1e6:.0f}",
                f"{f.both_seconds * 1e3:.2f}",
                f"{f.functional_seconds[SCALAR] / f.functional_seconds[best]:.1f}",
                f"{f.extra_nbytes / 2**20:.1f}",
            ],
        )
    yield (
        f"all {network_convolutions(figures)} convolutions of the network, results and cycles:"
        f" {network_seconds(figures):.3f} s"
    )


def document(figures: Sequence[StreamFigures]) -> dict[str, Any]:
    """Everything as JSON can say it."""
    rows = [
        {
            **asdict(f),
            "model_seconds": f.model_seconds,
            "gmacs": {path: f.gmacs(path) for path in f.functional_seconds},
            "mcycles_per_second": f.cycles / f.model_seconds / 1e6,
        }
        for f in (*figures, total(figures))
    ]
    return {"streams": rows[:-1], "total": rows[-1], "network_seconds": network_seconds(figures)}


def total(figures: Sequence[StreamFigures]) -> StreamFigures:
    """All streams one after the other; the memory is the largest."""
    return StreamFigures(
        name="sum",
        instructions=sum(f.instructions for f in figures),
        cycles=sum(f.cycles for f in figures),
        macs=sum(f.macs for f in figures),
        functional_seconds={
            path: sum(f.functional_seconds[path] for f in figures)
            for path in figures[0].functional_seconds
        },
        both_seconds=sum(f.both_seconds for f in figures),
        extra_nbytes=max(f.extra_nbytes for f in figures),
    )


def network_seconds(figures: Sequence[StreamFigures]) -> float:
    """Results and cycles of every convolution of the network, each as often as it occurs."""
    return sum(f.both_seconds * RESNET18_COUNTS.get(f.name, 1) for f in figures)


def network_convolutions(figures: Sequence[StreamFigures]) -> int:
    """How many convolutions that are."""
    return sum(RESNET18_COUNTS.get(f.name, 1) for f in figures)


def _measured(library: VtaLibrary, program: Program, seconds: Seconds, runs: int) -> StreamFigures:
    vta = program.target.geometry
    image = program.image()
    best, *others = library.vector_paths()
    functional, both = _interleaved(library, program, image, seconds, best, runs)
    by_path = {best: median(functional)}
    for path in others:
        count = min(runs, _SLOW_RUNS) if path in _SLOW_PATHS else runs
        by_path[path] = median(
            _one(library, program, image, seconds, path, exact=False) for _ in range(count)
        )
    library.use_vector_path(best)
    return StreamFigures(
        name=program.name,
        instructions=len(program.instructions),
        cycles=program.cycles or 0,
        macs=program.meta["gemm_uops"] * vta.batch * vta.block * vta.block,
        functional_seconds=by_path,
        both_seconds=median(both),
        extra_nbytes=0,
    )


def _interleaved(
    library: VtaLibrary, program: Program, image: Bytes, seconds: Seconds, path: str, runs: int
) -> tuple[list[float], list[float]]:
    """Seconds without and with cycles, in turns: what else the machine does hits both."""
    functional, both = [], []
    for _ in range(runs):
        functional.append(_one(library, program, image, seconds, path, exact=False))
        both.append(_one(library, program, image, seconds, path, exact=True))
    return functional, both


def _one(
    library: VtaLibrary, program: Program, image: Bytes, seconds: Seconds, path: str, *, exact: bool
) -> float:
    """Seconds of one run; configuring anew makes the library forget the run before."""
    library.configure(program.target, functional_only=not exact)
    library.use_vector_path(path)
    began = seconds()
    result = library.run_stream(program.instructions, image)
    taken = seconds() - began
    expected = program.expected_image()
    if (result.dram != expected).any() or (exact and result.counters.cycles != program.cycles):
        raise InfraError(f"{program.name}: path {path} answers otherwise than recorded")
    return taken
