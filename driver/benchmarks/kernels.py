"""`tilefarm bench kernels`: ResNet-18's convolutions in exact cycles, against the old flow."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tilefarm.errors import SettingsError
from tilefarm.plural import plural
from tilefarm.target import Target

from compile_worker.machines.vta.space.layer import layer_of
from compile_worker.space import generate, ideal_cycles
from device_server.vta.library.library import VtaLibrary
from driver.benchmarks.command_line import tell
from driver.benchmarks.isolated import Crashed, isolated
from driver.benchmarks.search import best_point
from driver.benchmarks.tvm_flow import OLD_FLOW, TemplatePoint, read_template
from driver.benchmarks.workload_runner import FailedSchedule, KernelMeasurement, WorkloadRunner
from driver.commands.options.shared import add_number, add_seed, add_target
from driver.program.vta.cycle_breakdown import CAUSES, CycleBreakdown
from driver.program.vta.layers import MOBILENET_DEPTHWISE, RESNET18, Convolution, LayerVariant
from driver.report.terminal.text_table import text_table
from driver.targets import simulated_target
from driver.tune.autotvm.template import same_choices

TRIALS: Final = 300
LAYERS: Final = {**{name: RESNET18[name] for name in OLD_FLOW}, **MOBILENET_DEPTHWISE}
SETS: Final = {"resnet18": tuple(OLD_FLOW), "depthwise": tuple(MOBILENET_DEPTHWISE)}
"""Names that stand for several layers."""

_SAME_MOST: Final = 24
"""Points with a template's choices that are measured; spaces seldom have more."""

_EPILOG: Final = """\
examples:
  tilefarm bench kernels
  tilefarm bench kernels --layers C2,C10 --trials 1000
  tilefarm bench kernels --bias --json
  tilefarm bench kernels --layers depthwise
  tilefarm bench kernels --bias --wide

The layers are those of the old flow's measurements, C2 to C11 of ResNet-18, or the depthwise ones
of MobileNet v1. Their epilogue is one shift and two clips (--bias adds a bias). ideal: one cycle
for every input vector and weight tile, two with weights (--wide) or data of 16 bits (--wide-data),
four with both. bound: ideal and what an output vector needs in the compute module besides. old: the
best point of the old flow's template, with the same epilogue, for 8 bits, and without a border
(--border). given old: the best of ours with the tiles, threads and loop order of that point.
Cycles are exact, so they are the same on every machine for the same seed and trials.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option(
        "--layers",
        default="resnet18",
        metavar="NAMES",
        help="C2 to C11, or resnet18 for all of them (the default); D1 to D9 or depthwise",
    )
    option("--bias", action="store_true", help="with a bias, added by one GEMM micro-op a vector")
    option("--per-channel", action="store_true", help="with a shift for every channel")
    option("--wide", action="store_true", help="with weights of 16 bits")
    option("--wide-data", action="store_true", help="with data of 16 bits")
    option("--wide-results", action="store_true", help="with results of 16 bits")
    option("--border", action="store_true", help="with results stored within a border of a pixel")
    add_number(parser, "trials", "a layer", default=TRIALS)
    add_seed(parser, "of the search")
    add_number(parser, "jobs", "layers at a time", default=1)
    add_target(parser)
    option("--old", type=Path, metavar="TABLE.csv", help="the template's points, instead of ours")
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    tasks = list(_tasks(args))
    figures = []
    for task, result in zip(tasks, isolated(measure_layer, tasks, jobs=args.jobs), strict=True):
        if not args.json:
            print(f"{task.name}: {_progress(result)}", file=sys.stderr, flush=True)
        figures.append(result)
    done = [each for each in figures if isinstance(each, KernelFigures)]
    tell(args, tables(done, args.trials), lambda: document(done, args))
    return 0 if len(done) == len(figures) else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTask:
    """What to find out about one layer."""

    name: str
    layer: Convolution
    epilogue: LayerVariant
    template: TemplatePoint | None
    target: Target
    trials: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFigures:
    """One layer: the limits, the old flow's cycles, ours, and where ours go.

    Attributes:
        ideal: cycles of the multiplication alone.
        bound: with what every output vector needs besides.
        best: our best.
        point: its tunables.
        trials, failed: of the search.
        old: the old flow's best with the same epilogue, where that is known.
        given_old: our best with that point's choices; None where our space has no such point.
    """

    name: str
    ideal: int
    bound: int
    best: KernelMeasurement
    point: Mapping[str, int]
    trials: int
    failed: int
    old: int | None = None
    given_old: int | None = None

    @property
    def over_bound(self) -> float:
        """How far above the bound: 0.01 is one percent."""
        return self.best.cycles / self.bound - 1


def measure_layer(task: KernelTask) -> KernelFigures | FailedSchedule:
    """Search one layer, and measure what the old flow's choices give."""
    workload = task.layer.workload(task.target, task.epilogue)
    made = generate(workload, task.target)
    bench = WorkloadRunner(VtaLibrary(), workload, task.target, task.seed)
    template = task.template if task.epilogue.is_narrow else None
    layer = layer_of(workload) if template else None
    same = same_choices(template, made, layer.extents)[:_SAME_MOST] if template and layer else []
    cycles = [bench.cycles(made.trace(point)) for point in same]
    found = best_point(made, bench, trials=task.trials, seed=task.seed)
    if found is None:
        return FailedSchedule("search", "not one schedule ran")
    best = bench.measured(made.trace(found.point))
    if isinstance(best, FailedSchedule):
        return best
    if not best.is_right:
        return FailedSchedule("run", "the best schedule's result is not the reference's")
    ideal = ideal_cycles(workload, task.target)
    return KernelFigures(
        name=task.name,
        ideal=ideal,
        bound=ideal + task.epilogue.vector_cycles * task.layer.output_vectors,
        old=_old_cycles(task),
        given_old=min((each for each in cycles if isinstance(each, int)), default=None),
        best=best,
        point={v.name: found.point[v.name] for v in made.space.tunables},
        trials=found.trials,
        failed=found.failed,
    )


def _old_cycles(task: KernelTask) -> int | None:
    """The old flow's best for this epilogue; None where nothing is known."""
    if not task.epilogue.is_narrow:
        return None
    if task.epilogue.bias:
        return OLD_FLOW[task.name].with_bias if task.name in OLD_FLOW else None
    return task.template.cycles if task.template else None


def tables(figures: Sequence[KernelFigures], trials: int) -> Iterator[str]:
    """Cycles against limits and the old flow, then where they go."""
    if not figures:
        return
    yield f"cycles, best of {plural(trials, 'trial')} a layer"
    titles = ("layer", "ideal", "bound", "old", "given old", "best", "over bound", "vs old")
    yield from text_table(titles, [*map(_limits_row, figures), _limits_sum(figures)])
    yield ""
    yield "where the best's cycles go"
    rows = [_spent_row(f.name, f.best.spent) for f in figures]
    rows.append(_spent_row("sum", _sum(f.best.spent for f in figures)))
    yield from text_table(("layer", *CAUSES, "cycles"), rows)


def document(figures: Sequence[KernelFigures], args: argparse.Namespace) -> dict[str, Any]:
    """Everything as JSON can say it."""
    rows = [{**asdict(f), "cycles": f.best.cycles, "over_bound": f.over_bound} for f in figures]
    return {
        "epilogue": asdict(_epilogue(args)),
        "trials": args.trials,
        "seed": args.seed,
        "layers": rows,
        "sum": {
            "ideal": sum(f.ideal for f in figures),
            "bound": sum(f.bound for f in figures),
            "cycles": sum(f.best.cycles for f in figures),
            "spent": asdict(_sum(f.best.spent for f in figures)),
        },
    }


def _tasks(args: argparse.Namespace) -> Iterator[KernelTask]:
    names = _names(args.layers)
    templates = {name: old.best for name, old in OLD_FLOW.items()}
    templates |= read_template(args.old) if args.old else {}
    target = simulated_target(args.target, on_processors="tilefarm bench processor")
    for name in names:
        yield KernelTask(
            name=name,
            layer=LAYERS[name],
            epilogue=_epilogue(args),
            template=templates.get(name),
            target=target,
            trials=args.trials,
            seed=args.seed,
        )


def _epilogue(args: argparse.Namespace) -> LayerVariant:
    return LayerVariant(
        bias=args.bias,
        per_channel=args.per_channel,
        wide=args.wide,
        wide_data=args.wide_data,
        wide_results=args.wide_results,
        border=args.border,
    )


def _names(words: str) -> list[str]:
    """The layers that --layers means."""
    names = [name for word in words.split(",") for name in SETS.get(word, (word,))]
    for name in names:
        if name not in LAYERS:
            known = ", ".join((*SETS, *LAYERS))
            raise SettingsError(f"--layers: there is no layer {name!r}", f"of {known}")
    return names


def _progress(result: KernelFigures | FailedSchedule | Crashed) -> str:
    if isinstance(result, KernelFigures):
        trials = plural(result.trials, "trial")
        return f"{plural(result.best.cycles, 'cycle')}, {trials}, {result.failed} failed"
    return result.why


def _limits_row(figures: KernelFigures) -> tuple[str, ...]:
    return _cells(
        figures.name, figures.ideal, figures.bound, figures.old, figures.given_old,
        figures.best.cycles,
    )  # fmt: skip


def _limits_sum(figures: Sequence[KernelFigures]) -> tuple[str, ...]:
    olds, given = [f.old for f in figures], [f.given_old for f in figures]
    return _cells(
        "sum",
        sum(f.ideal for f in figures),
        sum(f.bound for f in figures),
        None if None in olds else sum(filter(None, olds)),
        None if None in given else sum(filter(None, given)),
        sum(f.best.cycles for f in figures),
    )


def _cells(
    name: str, ideal: int, bound: int, old: int | None, given: int | None, best: int
) -> tuple[str, ...]:
    over, less = (
        f"{100 * (best / bound - 1):+.2f} %",
        f"{100 * (best / old - 1):+.2f} %" if old else "-",
    )
    numbers = ("-" if value is None else str(value) for value in (ideal, bound, old, given, best))
    return (name, *numbers, over, less)


def _spent_row(name: str, spent: CycleBreakdown) -> tuple[str, ...]:
    return (name, *(str(getattr(spent, cause)) for cause in CAUSES), str(spent.cycles))


def _sum(parts: Iterable[CycleBreakdown]) -> CycleBreakdown:
    total = CycleBreakdown()
    for part in parts:
        total += part
    return total
