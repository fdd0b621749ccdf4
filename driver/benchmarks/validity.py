"""`tilefarm bench validity`: what spaces allow is right, and what they forbid really fails."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from tilefarm.errors import SettingsError
from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.space import Generated, generate, has_space
from driver.benchmarks.command_line import tell
from driver.benchmarks.forbidden import forbidden_points
from driver.benchmarks.isolated import Crashed, isolated
from driver.benchmarks.sandboxed import Sandbox, ScheduleResult
from driver.benchmarks.validity_figures import (
    LayerValidity,
    SpaceValidity,
    WrongPoint,
    document,
    progress,
    tables,
)
from driver.benchmarks.workloads import workloads
from driver.commands.options.shared import add_number, add_seed, add_target
from driver.targets import simulated_target
from tuner.sampler import Sampler

POINTS: Final = 2000
FORBIDDEN: Final = 500

_SURPLUS: Final = 1.15
"""Small spaces have few forbidden points; the others are asked for some more."""

_EPILOG: Final = """\
examples:
  tilefarm bench validity
  tilefarm bench validity --layers C4,C10 --points 100 --forbidden 50

Valid points are drawn from the space of every layer; each is compiled, run in the sandbox, and its
result compared bit for bit. Forbidden points are neighbours of valid ones that break one
constraint and no other; they must fail to compile, or to run, or give a wrong result. Constraints
that only pick one of several equal schedules are left out. A forbidden point that works tells that
the constraint is too strict. Exit codes: 0 all is as promised, 1 it is not.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    add_number(parser, "points", "valid", default=POINTS)
    add_number(parser, "forbidden", "", default=FORBIDDEN, least=0)
    parser.add_argument("--layers", metavar="NAMES", help="of these layers only, by commas")
    add_seed(parser, "of points and data")
    add_number(parser, "jobs", "layers at a time", default=1)
    add_target(parser)
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    tasks = list(_tasks(args))
    found = []
    for task, result in zip(tasks, isolated(check_layer, tasks, jobs=args.jobs), strict=True):
        if isinstance(result, Crashed):
            result = LayerValidity(name=task.name, crashed=result.why)
        if not args.json:
            print(f"{task.name}: {progress(result)}", file=sys.stderr, flush=True)
        found.append(result)
    validity = SpaceValidity(tuple(found))
    tell(args, tables(validity), lambda: document(validity))
    return 0 if validity.holds else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTask:
    """How many points of one layer to try."""

    name: str
    workload: Workload
    target: Target
    points: int
    forbidden: int
    seed: int


def check_layer(task: LayerTask) -> LayerValidity:
    """Try the valid and the forbidden points of one layer."""
    made = generate(task.workload, task.target)
    sampler = Sampler(made.space)
    rng = np.random.default_rng(task.seed)
    valid = sampler.sample(task.points, rng)
    forbidden = forbidden_points(made, valid, rng, task.forbidden)
    with Sandbox(task.workload, task.target, task.seed) as sandbox:
        verdicts = [(point, sandbox.verdict(made.trace(point))) for point in valid]
        ends = [(name, point, sandbox.verdict(made.trace(point))) for name, point in forbidden]
    return LayerValidity(
        name=task.name,
        valid=len(valid),
        wrong=tuple(_wrong(made, p, v) for p, v in verdicts if not v.is_right),
        forbidden=tuple(name for name, _ in forbidden),
        refused=tuple(name for name, _, verdict in ends if verdict.constraint),
        working=tuple((name, _wrong(made, p, v)) for name, p, v in ends if v.is_right),
    )


def _tasks(args: argparse.Namespace) -> Iterator[LayerTask]:
    target = simulated_target(args.target)
    known = {name: w for name, w in workloads(target).items() if has_space(w, target)}
    names = args.layers.split(",") if args.layers else list(known)
    for name in names:
        if name not in known:
            raise SettingsError(f"--layers: no layer {name!r}", f"of {', '.join(known)}")
    sizes = [_size(known[name], target) for name in names]
    points_of = _shares(args.points, sizes)
    forbidden_of = _shares(round(_SURPLUS * args.forbidden), sizes)
    for name, points, forbidden in zip(names, points_of, forbidden_of, strict=True):
        yield LayerTask(
            name=name,
            workload=known[name],
            target=target,
            points=points,
            forbidden=forbidden,
            seed=args.seed,
        )


def _size(workload: Workload, target: Target) -> float:
    """How many points a space has."""
    return Sampler(generate(workload, target).space).size().points


def _shares(total: int, sizes: Sequence[float]) -> list[int]:
    """`total` among layers, as evenly as their sizes allow."""
    shares = [0] * len(sizes)
    for rank, at in enumerate(sorted(range(len(sizes)), key=lambda at: sizes[at])):
        left = total - sum(shares)
        shares[at] = int(min(sizes[at], -(-left // (len(sizes) - rank))))
    return shares


def _wrong(made: Generated, point: Point, verdict: ScheduleResult) -> WrongPoint:
    return WrongPoint(point={v.name: point[v.name] for v in made.space.tunables}, verdict=verdict)
