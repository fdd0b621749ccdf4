"""`tilefarm bench network`: a whole network in simulated cycles, a row a step, by cause.

On a processor it is told in seconds: see `driver.benchmarks.network_on_processor`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tilefarm.errors import InfraError
from tilefarm.machine import VTA_COUNTERS
from tilefarm.plural import plural
from tilefarm.readable import readable
from tilefarm.system_errors import unwritable
from tilefarm.target import Board
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from driver.benchmarks.accelerated_samples import accelerated_samples, pipeline_lines
from driver.benchmarks.command_line import tell
from driver.benchmarks.tuning import Outcome, Tuned, tuned
from driver.commands.options.networks import MODEL, add_network_options, source_of
from driver.commands.options.shared import add_number, add_seed, add_target, add_throughput
from driver.network import NetworkStep, forms_of, short_name
from driver.program.arena import plan_arena
from driver.program.simulated import WholeRun, whole_run
from driver.program.vta.cycle_breakdown import CAUSES, CycleBreakdown
from driver.report.cycles_page import Bar, cycles_page
from driver.report.terminal.text_table import text_table
from driver.targets import playable_target

DEFAULT_MODEL: Final = "zoo:resnet18"
TRIALS: Final = 200

_EPILOG: Final = """\
examples:
  tilefarm bench network
  tilefarm bench network zoo:mobilenet_v1 --trials 400 --html mobilenet.html
  tilefarm bench network net.onnx --calibrate data.npz --json
  tilefarm bench network net_qdq.onnx --target cpu
  tilefarm bench network net.onnx --target sim-ultra96 --calibrate data.npz --throughput
  tilefarm bench network net_qdq.onnx --target cpu@2 --throughput

Every workload of the accelerator is searched on simulated cycles (--trials of each; those that
differ in their clips only share what was found). A row tells what the compute module did in the
cycles of one step; steps without cycles run on the processor. Below: their sum, and the cycles of
the network compiled as one program, in which a step's first loads run beside the one before; for
a target with a board (`sim-pynq-z1`) what they take at its clock.

With `--target cpu` the network is tuned as `tilefarm tune` does it, --trials for each workload and
compiled on --jobs processes. A row has a layer's median in seconds, its spread from the 10th to
the 90th percentile, its speed, and its share of the peak that was measured beside it; --html is
the run's report.

With --throughput several samples are in flight, and latency and throughput are told. On an
accelerator one sample's layers of the processor run beside another's of the accelerator: stages are
timed, planned with all their memory, and run, the accelerator's in cycles at its clock (100 MHz
where the target has no board). On a processor of several threads each thread runs a sample, or all
of them share one: the better way is told first, in the fastest stretch of calls. The bound is the
work of the busiest engine; every answer is compared with that of one sample at a time.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option(
        "model",
        nargs="?",
        default=DEFAULT_MODEL,
        metavar=MODEL,
        help=f"(default: {DEFAULT_MODEL})",
    )
    add_number(parser, "trials", "a workload", default=TRIALS)
    add_seed(parser, "of the search")
    add_number(parser, "jobs", "workloads at a time", default=1)
    option("--html", type=Path, metavar="OUT.html", help="the steps as a picture")
    add_throughput(parser)
    add_target(parser)
    add_network_options(parser)
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    target = playable_target(args.target)
    if not target.has_accelerator:
        from driver.benchmarks.network_on_processor import run_on_processor

        return run_on_processor(args, target)
    forms = forms_of(source_of(args), target)
    network = forms.network

    def told(workload: Workload, outcome: Outcome) -> None:
        if not args.json:
            print(f"{workload.name}: {_progress(outcome)}", file=sys.stderr, flush=True)

    workloads = [workload for workload, _ in network.workloads()]
    found = tuned(
        workloads,
        network.target,
        trials=args.trials,
        seed=args.seed,
        jobs=args.jobs,
        told=told,
    )
    best = _all_good(found)
    traces = {workload: each.trace for workload, each in best.items()}
    whole = whole_run(network, forms.quantized, traces, forms.data.inputs)
    several = None
    if args.throughput is not None:
        planned = plan_arena(network, {}, keeps_runs=True).network
        several = accelerated_samples(planned, traces, forms.data.inputs, in_flight=args.throughput)
    figures = NetworkFigures(
        name=readable(short_name(args.model)),
        steps=tuple(_figures(step, best.get(step.workload)) for step in network.steps),
        whole=whole,
        trials=sum(each.trials for each in best.values()),
        failed=sum(each.failed for each in best.values()),
        board=network.target.board,
        pipeline=() if several is None else tuple(pipeline_lines(several, network.target)),
    )
    if args.html is not None:
        _write_page(args.html, figures)
    throughput = {} if several is None else {"throughput": several.document()}
    tell(args, tables(figures), lambda: document(figures, traces) | throughput)
    differing = whole.differing + (several.differing if several else 0)
    return 0 if differing == 0 else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFigures:
    """One call of a kernel: where it runs, and its cycles if that is the accelerator.

    No schedule takes fewer cycles than `bound`.
    """

    name: str
    workload: str
    operator: str
    place: str
    why: str
    bound: int = 0
    spent: CycleBreakdown | None = None
    read_nbytes: int = 0
    written_nbytes: int = 0

    @property
    def cycles(self) -> int:
        return self.spent.cycles if self.spent else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFigures:
    """A network's steps in order, and one run of it as a whole; on a `board` that takes a time.

    `pipeline` says in lines what several samples in flight give, if that was wanted.
    """

    name: str
    steps: tuple[StepFigures, ...]
    whole: WholeRun
    trials: int
    failed: int
    board: Board = Board()  # noqa: RUF009 (frozen)
    pipeline: tuple[str, ...] = ()

    @property
    def spent(self) -> CycleBreakdown:
        """All steps together."""
        return total(self.steps)

    @property
    def on_processor(self) -> tuple[StepFigures, ...]:
        return tuple(step for step in self.steps if step.place != "accelerator")


def total(steps: Sequence[StepFigures]) -> CycleBreakdown:
    """Cycles of several steps by cause."""
    return sum((step.spent for step in steps if step.spent), CycleBreakdown())


def tables(figures: NetworkFigures) -> Iterator[str]:
    """Steps, operators, and what they add up to."""
    titles = ("step", "operator", "bound", *CAUSES, "cycles")
    rows = [_row(step.name, step.operator, step.bound, step.spent) for step in figures.steps]
    rows.append(_row("sum", "", sum(step.bound for step in figures.steps), figures.spent))
    yield from text_table(titles, rows)
    yield ""
    yield from text_table(("operator", "steps", "cycles", "share"), list(_shares(figures)))
    yield ""
    cycles, counters = figures.spent.cycles, figures.whole.counters
    trials = plural(figures.trials, "trial")
    yield f"{plural(cycles, 'cycle')}, the steps one by one; {trials}, {figures.failed} failed"
    yield (
        f"{plural(counters.cycles, 'cycle')} as one program of"
        f" {plural(counters['instructions'], 'instruction')};"
        f" {figures.whole.differing} output elements differ from the reference"
    )
    if time := figures.board.time_of(counters.cycles):
        yield f"that is {time}"
    names = ", ".join(f"{step.name} ({step.operator})" for step in figures.on_processor)
    yield f"on the processor: {names or 'nothing'}"
    if figures.pipeline:
        yield ""
        yield from figures.pipeline


def document(figures: NetworkFigures, traces: Mapping[Workload, Trace]) -> dict[str, Any]:
    """Everything as JSON can say it, the schedules included."""
    counters = {name: figures.whole.counters[name] for name in VTA_COUNTERS}
    return {
        "network": figures.name,
        "cycles": figures.spent.cycles,
        "spent": asdict(figures.spent),
        "trials": figures.trials,
        "failed": figures.failed,
        "board": asdict(figures.board),
        "program": {**asdict(figures.whole), "counters": counters},
        "steps": [{**asdict(step), "cycles": step.cycles} for step in figures.steps],
        "schedules": {
            workload.name: json.loads(trace.to_json()) for workload, trace in traces.items()
        },
    }


def _figures(step: NetworkStep, found: Tuned | None) -> StepFigures:
    measured = found.measured if found else None
    return StepFigures(
        name=step.name,
        workload=step.workload.name,
        operator=step.workload.operator,
        place=step.place,
        why=step.why,
        bound=found.bound if found else 0,
        spent=measured.spent if measured else None,
        read_nbytes=measured.read_nbytes if measured else 0,
        written_nbytes=measured.written_nbytes if measured else 0,
    )


def _all_good(found: Mapping[Workload, Outcome]) -> dict[Workload, Tuned]:
    """The schedules of all workloads.

    Raises:
        InfraError: one has none.
    """
    good = {workload: each for workload, each in found.items() if isinstance(each, Tuned)}
    for workload, outcome in found.items():
        if not isinstance(outcome, Tuned):
            raise InfraError(f"no schedule of {workload.name}: {outcome.why}")
    return good


def _progress(outcome: Outcome) -> str:
    if not isinstance(outcome, Tuned):
        return outcome.why
    cycles = outcome.measured.cycles
    return f"{cycles} cycles, {plural(outcome.trials, 'trial')}, {outcome.failed} failed"


def _row(name: str, operator: str, bound: int, spent: CycleBreakdown | None) -> tuple[str, ...]:
    if spent is None:
        return (name, operator, *[""] * (len(CAUSES) + 2))
    causes = (str(getattr(spent, cause)) for cause in CAUSES)
    return (name, operator, str(bound), *causes, str(spent.cycles))


def _shares(figures: NetworkFigures) -> Iterator[tuple[str, ...]]:
    """Cycles by operator."""
    everything = figures.spent.cycles or 1
    for operator in dict.fromkeys(step.operator for step in figures.steps if step.spent):
        steps = [step for step in figures.steps if step.operator == operator]
        cycles = total(steps).cycles
        yield operator, str(len(steps)), str(cycles), f"{100 * cycles / everything:.1f} %"


def _write_page(path: Path, figures: NetworkFigures) -> None:
    bars = [
        Bar(
            name=step.name,
            words=f"{step.workload}, {step.why}" if step.why else step.workload,
            parts=asdict(step.spent) if step.spent else {},
            bound=step.bound,
        )
        for step in figures.steps
    ]
    facts = (
        f"{figures.whole.counters.cycles} cycles as one program; {plural(figures.trials, 'trial')};"
        f" {len(figures.on_processor)} of {plural(len(figures.steps), 'step')} on the processor"
    )
    try:
        path.write_text(cycles_page(figures.name, facts, CAUSES, bars), encoding="utf-8")
    except OSError as error:
        raise unwritable(path, error, "name a file in a folder that there is") from None
