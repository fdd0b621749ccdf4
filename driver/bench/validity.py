"""`tilefarm bench validity`: what spaces allow is right, and what they forbid really fails."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from tilefarm.errors import SettingsError
from tilefarm.space import Point, violations
from tilefarm.target import Target, load_target
from tilefarm.workload import Workload

from compile_worker.space import Generated, generate, has_space
from driver.bench.isolated import Crashed, isolated
from driver.bench.kinds import workloads
from driver.bench.sandboxed import Sandbox, Verdict
from driver.terminal.text_table import text_table
from tuner.sampler import Sampler

POINTS: Final = 2000
FORBIDDEN: Final = 500
WANTED_SHARE: Final = 0.95
"""Of the forbidden points, this share must really fail."""

CANONICAL: Final = ("canonical", "domain:")
"""Beginnings of names of constraints that pick one of equal schedules: these forbid nothing."""

_TRIES: Final = 60
_MOST_TRIES: Final = 240
"""Mutations that are tried for one forbidden point: so many, and where they are rare, more."""

_SURPLUS: Final = 1.15
"""Small spaces have few forbidden points; the others are asked for some more."""

_EPILOG: Final = """\
examples:
  tilefarm bench validity
  tilefarm bench validity --layers D7,matmul --points 200 --forbidden 100

Valid points are drawn from the space of every layer; each is compiled, run in the sandbox, and its
result compared bit for bit. Forbidden points are neighbours of valid ones that break one
constraint and no other; they must fail to compile, or to run, or give a wrong result. Constraints
that only pick one of several equal schedules are left out. A forbidden point that works tells that
the constraint is too strict. Exit codes: 0 all is as promised, 1 it is not.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("--points", type=int, default=POINTS, metavar="N", help=f"valid (default: {POINTS})")
    option("--forbidden", type=int, default=FORBIDDEN, metavar="N", help=f"(default: {FORBIDDEN})")
    option("--layers", metavar="NAMES", help="of these layers only, by commas")
    option("--seed", type=int, default=0, metavar="N", help="of points and data (default: 0)")
    option("--jobs", type=int, default=1, metavar="N", help="layers at a time (default: 1)")
    option("--target", default="sim", metavar="NAME|FILE.json", help="(default: sim)")
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    tasks = list(_tasks(args))
    found = []
    for task, result in zip(tasks, isolated(check_layer, tasks, jobs=args.jobs), strict=True):
        if isinstance(result, Crashed):
            result = LayerValidity(name=task.name, crashed=result.why)
        if not args.json:
            print(f"{task.name}: {_progress(result)}", file=sys.stderr, flush=True)
        found.append(result)
    validity = Validity(tuple(found))
    if args.json:
        print(json.dumps(document(validity)))
    else:
        for line in tables(validity):
            print(line)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A point that did not do as promised: its tunables, and how it ended."""

    point: Mapping[str, int]
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerValidity:
    """What became of one layer's points.

    Attributes:
        valid: valid points that were tried.
        wrong: those of them that did not compile, run, or give the right result.
        forbidden: the constraint that each forbidden point breaks.
        refused: those of them that the compiler refused by a limit's name.
        working: forbidden points that work, by constraint.
        crashed: why the layer's process ended early, if it did.
    """

    name: str
    valid: int = 0
    wrong: tuple[Wrong, ...] = ()
    forbidden: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    working: tuple[tuple[str, Wrong], ...] = ()
    crashed: str = ""


@dataclass(frozen=True, slots=True)
class Validity:
    """All layers together."""

    layers: tuple[LayerValidity, ...]

    @property
    def valid(self) -> int:
        return sum(layer.valid for layer in self.layers)

    @property
    def right(self) -> int:
        return self.valid - sum(len(layer.wrong) for layer in self.layers)

    @property
    def forbidden(self) -> int:
        return sum(len(layer.forbidden) for layer in self.layers)

    @property
    def failing(self) -> int:
        """Forbidden points that really fail."""
        return self.forbidden - sum(len(layer.working) for layer in self.layers)

    @property
    def holds(self) -> bool:
        """Whether spaces keep their promise, in both directions."""
        crashed = any(layer.crashed for layer in self.layers)
        fails = self.failing >= WANTED_SHARE * self.forbidden
        return self.right == self.valid and fails and not crashed


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


def forbidden_points(
    made: Generated, valid: Sequence[Point], rng: np.random.Generator, count: int
) -> list[tuple[str, dict[str, int]]]:
    """Neighbours of valid points that break one constraint each, evenly by constraint.

    A neighbour has one or two tunables with other values.
    """
    pools: dict[str, dict[tuple[int, ...], dict[str, int]]] = {}
    sampler = Sampler(made.space)
    tunables = [v for v in made.space.tunables if len(v.domain) > 1]
    for tried in range(_MOST_TRIES * count if valid and tunables else 0):
        if tried >= _TRIES * count and sum(map(len, pools.values())) >= count:
            break
        point = valid[int(rng.integers(len(valid)))]
        moved = {v.name: point[v.name] for v in made.space.tunables}
        for at in rng.integers(len(tunables), size=rng.integers(1, 3)):
            domain = tunables[at].domain
            moved[tunables[at].name] = domain[rng.integers(len(domain))]
        full = made.completed(moved)
        broken = violations(made.space, full)
        if len(broken) == 1 and not broken[0].startswith(CANONICAL):
            pools.setdefault(broken[0], {})[sampler.key(full)] = full
    return _evenly({name: [*pool.values()] for name, pool in pools.items()}, count)


def _evenly(
    pools: Mapping[str, list[dict[str, int]]], count: int
) -> list[tuple[str, dict[str, int]]]:
    """At most `count` points, one of each constraint in turn."""
    most = max(map(len, pools.values()), default=0)
    turns = (
        (name, pool[at]) for at in range(most) for name, pool in pools.items() if at < len(pool)
    )
    return [each for each, _ in zip(turns, range(count), strict=False)]


def tables(validity: Validity) -> Iterator[str]:
    """Layers, then constraints, then what is not as promised."""
    rows = [_layer_row(layer) for layer in validity.layers]
    yield from text_table(("layer", "valid", "right", "forbidden", "failing"), rows)
    yield ""
    forbidden = Counter(name for layer in validity.layers for name in layer.forbidden)
    refused = Counter(name for layer in validity.layers for name in layer.refused)
    working = Counter(name for layer in validity.layers for name, _ in layer.working)
    cells = [
        (name, str(n), str(n - working[name]), str(refused[name]), _percent(n - working[name], n))
        for name, n in sorted(forbidden.items())
    ]
    titles = ("constraint", "forbidden", "failing", "refused by name", "share")
    yield from text_table(titles, cells)
    yield ""
    yield from _complaints(validity)
    yield (
        f"{validity.right} of {validity.valid} valid points are right;"
        f" {validity.failing} of {validity.forbidden} forbidden ones fail"
        f" ({_percent(validity.failing, validity.forbidden)})"
    )


def _complaints(validity: Validity) -> Iterator[str]:
    for layer in validity.layers:
        if layer.crashed:
            yield f"{layer.name}: {layer.crashed}"
        for wrong in layer.wrong:
            verdict = wrong.verdict
            why = verdict.why.splitlines()[0] if verdict.why else ""
            yield f"{layer.name}: {verdict.status.value}: {why}: {dict(wrong.point)}"
    shown: set[str] = set()
    for layer in validity.layers:
        for name, wrong in layer.working:
            if name not in shown:
                shown.add(name)
                yield f"{layer.name}: {name} forbids a point that works: {dict(wrong.point)}"


def document(validity: Validity) -> dict[str, Any]:
    """Everything as JSON can say it."""
    layers = [asdict(layer) for layer in validity.layers]
    for layer in layers:
        for wrong in (*layer["wrong"], *(each for _, each in layer["working"])):
            wrong["verdict"]["status"] = wrong["verdict"]["status"].value
    return {
        "valid": validity.valid,
        "right": validity.right,
        "forbidden": validity.forbidden,
        "failing": validity.failing,
        "layers": layers,
    }


def _tasks(args: argparse.Namespace) -> Iterator[LayerTask]:
    target = load_target(args.target)
    known = {name: w for name, w in workloads(target).items() if has_space(w)}
    names = args.layers.split(",") if args.layers else list(known)
    for name in names:
        if name not in known:
            raise SettingsError(f"--layers: no layer {name!r}", f"of {', '.join(known)}")
    if args.points < 1 or args.forbidden < 0 or args.jobs < 1:
        raise SettingsError("--points and --jobs: at least 1; --forbidden: at least 0")
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
    """About how many points a space has; exactly where these are few."""
    return Sampler(generate(workload, target).space).survey(np.random.default_rng(0))[1]


def _shares(total: int, sizes: Sequence[float]) -> list[int]:
    """`total` among layers, as evenly as their sizes allow."""
    shares = [0] * len(sizes)
    for rank, at in enumerate(sorted(range(len(sizes)), key=lambda at: sizes[at])):
        left = total - sum(shares)
        shares[at] = int(min(sizes[at], -(-left // (len(sizes) - rank))))
    return shares


def _wrong(made: Generated, point: Point, verdict: Verdict) -> Wrong:
    return Wrong(point={v.name: point[v.name] for v in made.space.tunables}, verdict=verdict)


def _layer_row(layer: LayerValidity) -> tuple[str, ...]:
    forbidden = len(layer.forbidden)
    numbers = (layer.valid, layer.valid - len(layer.wrong), forbidden)
    return (layer.name, *map(str, numbers), str(forbidden - len(layer.working)))


def _progress(layer: LayerValidity) -> str:
    if layer.crashed:
        return layer.crashed
    return (
        f"{layer.valid - len(layer.wrong)} of {layer.valid} valid points right,"
        f" {len(layer.forbidden) - len(layer.working)} of {len(layer.forbidden)} forbidden fail"
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
