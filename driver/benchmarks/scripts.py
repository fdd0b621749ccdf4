"""`tilefarm bench scripts`: what the generation rules make of users' scripts on this processor."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from tilefarm.artifact import BuildFailure, CompileJob
from tilefarm.command_line import whole_from
from tilefarm.dtype import DType
from tilefarm.errors import InfraError
from tilefarm.target import Target
from tilefarm.trace import Step, Trace
from tilefarm.workload import TensorSpec, Workload

from compile_worker.compiler import compile_kernel
from compile_worker.ir.stmt import For
from compile_worker.ir.visit import find
from compile_worker.space import generate
from compile_worker.te import nest_of
from driver.benchmarks.command_line import add_gate, gated, tell
from driver.benchmarks.cpu import seconds_of
from driver.benchmarks.figures import Figure, figure_table
from driver.benchmarks.script_sources import (
    AVERAGE,
    CONV2D,
    GEMM,
    LARGEST,
    ROUNDED,
    SMOOTH,
    SOFTMAX,
    STENCIL,
)
from driver.targets import usable_target
from tuner.sampler import Sampler

_POINTS: Final = 40

_EPILOG: Final = """\
examples:
  tilefarm bench scripts
  tilefarm bench scripts --points 100 --gate

Times are medians of calls in the sandbox, and every answer is compared with the interpreter's.
`plain` are the loops as they are written, vectorized by the compiler's passes; `default` is what
the space begins with, and `best` the best of it and of sampled points.
"""


@dataclass(frozen=True, slots=True)
class Script:
    """A script on tensors of some shapes, and how many times faster than its loops it has to be."""

    text: str
    out: tuple[int, ...]
    inputs: Mapping[str, tuple[int, ...]]
    goal: float

    @property
    def workload(self) -> Workload:
        specs = [TensorSpec(name, shape, DType.FLOAT32) for name, shape in self.inputs.items()]
        made = TensorSpec("out", self.out, DType.FLOAT32)
        return Workload("script", tuple(specs), (made,), (("source", self.text),))


SCRIPTS: Final[Mapping[str, Script]] = {
    "gemm": Script(GEMM, (128, 128), {"a": (128, 128), "b": (128, 128)}, 5.0),
    "gemm that rounds": Script(ROUNDED, (64, 128), {"a": (64, 256), "b": (128, 256)}, 5.0),
    "softmax": Script(SOFTMAX, (48, 256), {"x": (48, 256)}, 1.5),
    "convolution": Script(CONV2D, (32, 28, 28), {"x": (32, 28, 28), "w": (32, 32, 3, 3)}, 3.0),
    "smooth": Script(SMOOTH, (32, 1000), {"x": (32, 1008), "k": (9,)}, 1.0),
    "stencil": Script(STENCIL, (254, 254), {"x": (256, 256)}, 1.0),
    "moving average": Script(AVERAGE, (200, 512), {"x": (200, 512)}, 5.0),
    "place of the largest": Script(LARGEST, (512,), {"x": (512, 200)}, 1.5),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    parser.add_argument(
        "--points",
        type=whole_from(1),
        default=_POINTS,
        metavar="N",
        help=f"of each space, beside its default (default: {_POINTS})",
    )
    parser.add_argument("--repeats", type=whole_from(1), default=51, metavar="N", help="of a call")
    add_gate(parser)
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    target = usable_target("cpu")
    figures = [
        figure
        for name, script in SCRIPTS.items()
        for figure in script_figures(name, script, target, args.points, args.repeats)
    ]
    tell(args, figure_table(figures), lambda: [figure.row() for figure in figures])
    return gated(args, figures)


def script_figures(
    name: str, script: Script, target: Target, points: int, repeats: int
) -> Iterator[Figure]:
    """Microseconds of the loops as they are written, of the default and the best; and the gain."""
    workload = script.workload
    made = generate(workload, target)
    sampled = Sampler(made.space).sample(points, np.random.default_rng(0))
    plain = _seconds(workload, _plain(workload, target), target, repeats)
    seconds = [
        _seconds(workload, made.trace(point), target, repeats) for point in (made.default, *sampled)
    ]
    yield Figure(name=f"{name}: plain", value=1e6 * plain, unit="us")
    yield Figure(name=f"{name}: default", value=1e6 * seconds[0], unit="us")
    yield Figure(name=f"{name}: best", value=1e6 * min(seconds), unit="us")
    yield Figure(
        name=f"{name}: plain / best",
        value=plain / min(seconds),
        unit="x",
        goal=script.goal,
        more_is_better=True,
    )


def _plain(workload: Workload, target: Target) -> Trace:
    """A schedule that changes nothing: an empty one would be the default's."""
    outermost = next(find(nest_of(workload, target).body, For))
    return Trace((Step("reorder", (outermost.var.name,)),))


def _seconds(workload: Workload, trace: Trace, target: Target, repeats: int) -> float:
    job = CompileJob(workload=workload, trace=trace, target=target)
    built = compile_kernel(job)
    if isinstance(built, BuildFailure):
        raise InfraError(f"{workload.name}: {built.why}")
    return seconds_of(job, built.code, repeats)
