"""`tilefarm bench tuner`: how many trials a search needs, by proposer, in exact cycles."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tilefarm.command_line import whole_from
from tilefarm.errors import SettingsError
from tilefarm.target import Target

from compile_worker.space import generate, has_space
from driver.atomic_write import write_atomically
from driver.benchmarks.command_line import add_gate, gated, tell
from driver.benchmarks.figures import Figure, figure_table
from driver.benchmarks.isolated import Crashed, isolated
from driver.benchmarks.tuner.ablations import ABLATIONS
from driver.benchmarks.tuner.cases import (
    BEST_KNOWN,
    GROUPS,
    NETWORKS,
    QUICK,
    CaseGroup,
    case_workloads,
    network_workloads,
)
from driver.benchmarks.tuner.conversations import Conversation, quantile
from driver.benchmarks.tuner.curves import curves_page, search_curve
from driver.benchmarks.tuner.tasks import (
    ABLATION_SEEDS,
    NOISY,
    CaseResult,
    CaseTask,
    NetworkResult,
    NetworkTask,
    measure_case,
    measure_network,
    processor_seconds,
)
from driver.benchmarks.tuner.template_space import (
    TemplateResult,
    TemplateTask,
    measure_template,
)
from driver.benchmarks.tvm_flow import OLD_FLOW, read_points
from driver.commands.options.shared import add_number
from driver.environment import machine
from driver.report.terminal.text_table import text_table
from driver.targets import simulated_target
from tuner import PROPOSERS
from tuner.session import WeightedSpace

_SEEDS: Final = 20
_TRIALS: Final = 24
_QUICK_SEEDS: Final = 3
_LEADER: Final = "guided"
_COST_TRIALS: Final = 1000
_QUICK_COST_TRIALS: Final = 200

_TRIALS_A_SECOND: Final = 40
_TEMPLATE: Final = 40
"""Trials in the old flow's space."""

_EPILOG: Final = f"""\
examples:
  tilefarm bench tuner --quick
  tilefarm bench tuner --gate --jobs 2
  tilefarm bench tuner --proposers all --seeds 5 --html curves.html

Each proposer searches each workload alone, told after every trial, with so many seeds. A row has
the trials until one is within 1 % (small kernels and windows: 5 %) of the best known cycles, median
and p90 over seeds; what is not reached counts as one trial more than there are. A point is
simulated once. Then the same for {_LEADER} by a clock that is off by 2 %, and how often what it
reports is within 2 % of the best known; {_LEADER} without one of its parts, with {ABLATION_SEEDS}
seeds at most (CP-SAT sampling where OR-Tools is installed); networks after one trial for each
workload and after 200; what proposing and learning take of the processor at {_COST_TRIALS} trials,
with made-up costs; with --old, which has all points of the old flow's template with their cycles,
searches of that space, without an estimate and with one of its programs. Goals are those of
{_LEADER}.

exit codes: 0 done; 1 a goal is missed, with --gate; 2 bad input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option(
        "--proposers",
        default=_LEADER,
        metavar="NAMES",
        help=f"of {', '.join(PROPOSERS)}, or all (default: {_LEADER})",
    )
    option("--seeds", type=whole_from(1), metavar="N", help=f"of each search (default: {_SEEDS})")
    option("--quick", action="store_true", help=f"a few workloads, {_QUICK_SEEDS} seeds")
    add_number(parser, "trials", "of each search", default=_TRIALS)
    add_number(parser, "jobs", "workloads at a time", default=1)
    option("--html", type=Path, metavar="PAGE", help="the searches' curves, workload by workload")
    option("--old", type=Path, metavar="TABLE.csv", help="search the old flow's space as well")
    add_gate(parser)
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    target = simulated_target("sim", on_processors="tilefarm bench processor")
    results = _case_results(args, target)
    figures = list(_figures(args, target, results))
    trials = args.trials

    def lines() -> Iterator[str]:
        yield f"machine  {machine()}"
        yield ""
        yield f"trials to within 1 % (small ones 5 %) of the best known: median, p90; of {trials}"
        names = _shown(args)
        titles = ("workload", "best known", *names, "simulated")
        yield from text_table(titles, list(_case_rows(results, names, trials)))
        yield ""
        yield from figure_table(figures)

    def document() -> dict[str, Any]:
        cases = {
            name: {"best_known": _best_known(name, found), "searches": _plain(found)}
            for name, found in results.items()
        }
        rows = [figure.row() for figure in figures]
        return {"machine": machine(), "trials": trials, "figures": rows, "cases": cases}

    tell(args, lines(), document)
    return gated(args, figures)


def _write_page(path: Path | None, results: Mapping[str, CaseResult]) -> None:
    """Raises OutputError: it cannot be written."""
    if path is None:
        return
    best_known = {name: _best_known(name, found) for name, found in results.items()}
    curves = {
        name: [search_curve(each, s, best_known[name]) for each, s in found.searches.items()]
        for name, found in results.items()
    }
    write_atomically(path, curves_page(curves, best_known).encode())


# -- workloads -------------------------------------------------------------------------------------


def _proposers(args: argparse.Namespace) -> tuple[str, ...]:
    names = tuple(PROPOSERS) if args.proposers == "all" else tuple(args.proposers.split(","))
    for name in names:
        if name not in PROPOSERS:
            raise SettingsError(
                f"--proposers: there is no {name!r}", f"of {', '.join(PROPOSERS)}, or all"
            )
    return tuple(dict.fromkeys((_LEADER, *names)))


def _shown(args: argparse.Namespace) -> tuple[str, ...]:
    return (*_proposers(args), *ABLATIONS, NOISY)


def _seeds(args: argparse.Namespace) -> int:
    seeds: int | None = args.seeds
    return seeds or (_QUICK_SEEDS if args.quick else _SEEDS)


def _case_results(args: argparse.Namespace, target: Target) -> dict[str, CaseResult]:
    """The searches of every workload, each in a process of its own."""
    named = case_workloads(target)
    names = QUICK if args.quick else tuple(named)
    tasks = [
        CaseTask(
            name=name,
            workload=named[name],
            target=target,
            proposers=_proposers(args),
            seeds=_seeds(args),
            trials=args.trials,
        )
        for name in names
    ]
    found: dict[str, CaseResult] = {}
    _write_page(args.html, found)  # So that it can be seen as it grows, and fails at once.
    for task, result in zip(tasks, isolated(measure_case, tasks, jobs=args.jobs), strict=True):
        said = "crashed" if isinstance(result, Crashed) else f"{result.simulated} points"
        print(f"{task.name}: {said}", file=sys.stderr, flush=True)
        if isinstance(result, CaseResult):
            found[task.name] = result
            _write_page(args.html, found)
    return found


def _best_known(name: str, found: CaseResult) -> float:
    return min(BEST_KNOWN[name], found.least)


def _group_of(name: str) -> CaseGroup:
    return next(group for group in GROUPS if name in group.cases)


def _trials_to(
    name: str, found: CaseResult, searches: Sequence[Conversation], most: int, within: float
) -> list[float]:
    """Of every search, at most one more than there were."""
    cycles = _best_known(name, found) * (1 + within)
    return [min(each.trials_to(cycles), most + 1) for each in searches]


def _case_rows(
    results: Mapping[str, CaseResult], names: Sequence[str], most: int
) -> Iterator[tuple[str, ...]]:
    for name, found in results.items():
        cells = []
        for proposer in names:
            within = 0.05 if proposer == NOISY else _group_of(name).within
            to = _trials_to(name, found, found.searches[proposer], most, within)
            cells.append(", ".join(_number(quantile(to, share), most) for share in (0.5, 0.9)))
        yield name, f"{_best_known(name, found):.0f}", *cells, str(found.simulated)


def _number(value: float, most: int) -> str:
    return f"> {most}" if value > most else f"{value:.0f}"


def _plain(found: CaseResult) -> dict[str, Any]:
    return {
        proposer: [
            {"cycles": [c if math.isfinite(c) else None for c in s.cycles], "reported": s.reported}
            for s in searches
        ]
        for proposer, searches in found.searches.items()
    }


# -- figures ---------------------------------------------------------------------------------------


def _figures(
    args: argparse.Namespace, target: Target, results: Mapping[str, CaseResult]
) -> Iterator[Figure]:
    for group in GROUPS:
        mine = {name: results[name] for name in group.cases if name in results}
        if mine:
            yield from group_figures(group, mine, _proposers(args), args.trials)
    yield from _template_figures(args, target)
    yield from _noisy_figures(results, args.trials)
    yield from _ablation_figures(results, args.trials)
    yield from _network_figures(args, target)
    yield from _cost_figures(args, target)


def group_figures(
    group: CaseGroup, mine: Mapping[str, CaseResult], names: Sequence[str], most: int
) -> Iterator[Figure]:
    """Of all searches of a group."""
    for proposer in names:
        to = [
            trials
            for name, found in mine.items()
            for trials in _trials_to(name, found, found.searches[proposer], most, group.within)
        ]
        goals = (group.median_goal, group.p90_goal) if proposer == _LEADER else (None, None)
        for word, share, goal in zip(("median", "p90"), (0.5, 0.9), goals, strict=True):
            yield Figure(
                name=f"{group.name}, {proposer}: {word} to {100 * group.within:g} %",
                value=quantile(to, share),
                unit="trials",
                goal=goal,
            )
        finals = []
        for name, found in mine.items():
            ends = [min(search.cycles) for search in found.searches[proposer]]
            finals.append(quantile(ends, 0.5) / _best_known(name, found))
        yield Figure(
            name=f"{group.name}, {proposer}: worst final best after {most} trials (median)",
            value=100 * (max(finals) - 1),
            unit="%",
            goal=100 * group.within if proposer == _LEADER else None,
        )


def _template_figures(args: argparse.Namespace, target: Target) -> Iterator[Figure]:
    """Of the layer of the old flow's space that needs most trials."""
    if args.old is None:
        return
    tasks = [
        TemplateTask(
            name=name, points=tuple(points), target=target, seeds=_seeds(args), trials=_TEMPLATE
        )
        for name, points in read_points(args.old).items()
        if name in OLD_FLOW
    ]
    found = list(isolated(measure_template, tasks, jobs=args.jobs))
    good = [each for each in found if isinstance(each, TemplateResult)]
    for words, trials, goal in (
        ("without an estimate", [each.without_estimate for each in good], 8),
        ("with one", [each.with_estimate for each in good], 2),
    ):
        yield Figure(
            name=f"the old flow's space, {words}: worst layer's median to 5 %",
            value=max(trials) if len(good) == len(found) else math.nan,
            unit="trials",
            goal=goal,
        )


def _noisy_figures(results: Mapping[str, CaseResult], most: int) -> Iterator[Figure]:
    to, good, count = list[float](), 0, 0
    for name, found in results.items():
        to += _trials_to(name, found, found.searches[NOISY], most, 0.05)
        good += sum(s.reported <= 1.02 * _best_known(name, found) for s in found.searches[NOISY])
        count += len(found.searches[NOISY])
    yield Figure(name=f"{NOISY}: median to 5 %", value=quantile(to, 0.5), unit="trials", goal=2)
    yield Figure(name=f"{NOISY}: p90 to 5 %", value=quantile(to, 0.9), unit="trials", goal=8)
    share = 100 * good / max(count, 1)
    yield Figure(
        name=f"{NOISY}: reported within 2 % of the best",
        value=share,
        unit="%",
        goal=80,
        more_is_better=True,
    )


def _ablation_figures(results: Mapping[str, CaseResult], most: int) -> Iterator[Figure]:
    """Of all workloads: the mean of the trials, where what is not reached counts as one more."""
    for name in (_LEADER, *ABLATIONS):
        to = [
            trials
            for case, found in results.items()
            for trials in _trials_to(
                case, found, found.searches[name], most, _group_of(case).within
            )
        ]
        words = "as it is" if name == _LEADER else name
        yield Figure(name=f"{_LEADER}, {words}: mean", value=sum(to) / len(to), unit="trials")


def _network_figures(args: argparse.Namespace, target: Target) -> Iterator[Figure]:
    names = ["zoo:squeezenet"] if args.quick else list(NETWORKS)
    tasks = [
        NetworkTask(
            name=name, workloads=tuple(network_workloads(name, target).items()), target=target
        )
        for name in names
    ]
    for task, result in zip(tasks, isolated(measure_network, tasks, jobs=args.jobs), strict=True):
        if not isinstance(result, NetworkResult):
            yield Figure(name=f"{task.name}: crashed", value=math.nan, unit="", goal=0)
            continue
        print(f"{task.name}: {asdict(result)}", file=sys.stderr, flush=True)
        best = min(NETWORKS[task.name], result.first, result.final, result.together, result.alone)
        for words, cycles, goal in (
            (f"after {result.trials} trials", result.first, 0.5),
            ("after 200 trials", result.final, 0.5),
            ("after 8 a workload", result.together, None),
            ("after 8 a workload, without transfer", result.alone, None),
        ):
            over = 100 * (cycles / best - 1)
            yield Figure(
                name=f"{task.name}, {words}: over the best", value=over, unit="%", goal=goal
            )


def _cost_figures(args: argparse.Namespace, target: Target) -> Iterator[Figure]:
    trials = _QUICK_COST_TRIALS if args.quick else _COST_TRIALS
    named = case_workloads(target)
    for what, names in (("C2", ("C2",)), ("the demo", tuple(n for n in named if "demo" in n))):
        tasks = {
            name: WeightedSpace(generate(named[name], target).space)
            for name in names
            if has_space(named[name], target)
        }
        seconds = processor_seconds(tasks, trials)
        yield Figure(
            name=f"proposing and learning, {what}, {trials} trials",
            value=1000 * seconds,
            unit="ms/trial",
            goal=None if args.quick else 2.0,
        )
        yield Figure(
            name=f"  at {_TRIALS_A_SECOND} trials/s, of wall time",
            value=100 * _TRIALS_A_SECOND * seconds,
            unit="%",
            goal=None if args.quick else 5.0,
        )
