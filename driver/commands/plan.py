"""`tilefarm plan`: when everything runs and where every buffer lies, for a network or a problem."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tilefarm.documents import read_text
from tilefarm.errors import DataError, SettingsError, UserError
from tilefarm.printable import printable_lines
from tilefarm.quiet import quiet_libraries
from tilefarm.system_errors import unreadable, unwritable

from driver.commands.options.networks import MODEL, add_network_options
from driver.commands.options.shared import add_number, add_seed, add_target, add_throughput

if TYPE_CHECKING:
    from driver.commands.network_plan import NetworkProblem
    from driver.memory import Plan, Problem
    from driver.report.shown_plan import ShownPlan

_SECONDS: Final = 60

EPILOG: Final = """\
examples:
  tilefarm plan zoo:resnet18
  tilefarm plan zoo:digits --measured tilefarm-out/digits
  tilefarm plan zoo:digits --measured tilefarm-out/digits --throughput --html pipeline.html
  tilefarm plan problem.json --html plan.html --trace plan-trace.json
  tilefarm plan problem.json --mode exact --seconds 120
  tilefarm plan problem.json --json > plan.json
  tilefarm plan problem.json --compare plan.json --html both.html
  tilefarm plan A.1048576.csv --capacity 1048576 --csv offsets.csv

A network is planned as its program is: kernels one after the other, intermediate tensors in the
least memory that is found. With --measured RUN its steps take what was measured: the best
trials of its kernels, held against the profile of its program. Where critical steps are off by more
than 10 %, the plan is made anew with the profile's times. What nobody measured is modelled, and
said. An accelerator without a board has a clock of 100 MHz then.

With --throughput several samples are in flight: accelerator and processor run beside each other,
each thread of a processor a sample. Steps that follow each other on one engine are one stage; the
oldest sample goes first. The memory of all samples is planned together, a place for each of them in
turn.

A problem says what there is, in JSON; what a row lacks is as here:

  {"schema": 3,
   "engines":  [{"name": "npu"}, {"name": "in", "kind": "dma", "in_order": false},
                {"name": "out", "kind": "dma", "in_order": false, "instances": 1}],
   "memories": [{"name": "sram", "capacity_nbytes": 65536, "alignment": 64, "backing": "dram",
                 "save": {"engine": "out", "latency_ticks": 20, "nbytes_per_tick": 16},
                 "read": {"engine": "in", "latency_ticks": 20, "nbytes_per_tick": 16}},
                {"name": "dram"}],
   "buffers":  [{"name": "w", "nbytes": 4096, "first_content": "backed"},
                {"name": "x", "nbytes": 9000, "first_content": "present"},
                {"name": "y", "nbytes": 9000, "needed_after": true}],
   "ops":      [{"name": "conv", "engine": "npu", "duration_ticks": 700,
                 "reads": ["x", "w"], "writes": ["y"]}]}

Besides: a memory's `reserved` [[offset, bytes], ...]; a buffer's `memory`, `alignment`,
`pinned_at`, `group` (buffers that share an offset), `view_of` with `view_offset`, and `spillable`;
an operation's `samples` instead of a duration (their median counts, and the plan is replayed with
them: how long it takes then, and what is critical), `after` (names), `takes_all` instances,
`repeatable` (it may run again instead of moving its result), and `in_place` [[operand, result],
...] (the result may take the operand's place, where nobody needs that any more). `barriers` of the
problem, if it is given, is how many operations and transfers run at a time at most: each holds a
signal, on which those wait that come after it.
Durations are whole ticks of whatever length. The first engine and memory are meant where none is
named. The given order of operations says which content is read; engines that are `in_order` keep
it, others run what is ready.

The feasible scheduler is that of Intel's npu_compiler: demand-driven loads, prefetching in two
passes, forced spills. The best plan is never longer: it is the shortest that was found; of those
the one that moves the fewest bytes besides what must be moved, and of those the one with the
smallest peak. The exact one goes on from there until nothing is shorter, or --seconds are over.
Every plan is proved by a validator that shares nothing with these. Same problem, seed and effort,
same plan, unless --seconds end the search. With --json it says as well who has to wait for whom
because of bytes: `reuse_edges`, by numbers among its ops, repeats and transfers, in a row.

A CSV has buffers with given lifetimes, as google/minimalloc writes them (id,lower,upper,size, and
alignment, gaps, offset): offsets are found, the smallest peak or any within --capacity.

exit codes: 0 done; 1 there is no plan: the reason is told; 2 bad input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    from driver.memory.planner import EFFORT

    option = parser.add_argument
    option("model", metavar=f"{MODEL}|PROBLEM.json|FILE.csv", help="a network, or a problem")
    option(
        "--compare", type=Path, metavar="PLAN.json", help="another plan of it, shown beside ours"
    )
    option(
        "--measured",
        type=Path,
        metavar="RUN",
        help="a run of `tilefarm tune` of this network: its steps take what was measured there",
    )
    option("--html", type=Path, metavar="OUT.html", help="a page with charts")
    option("--trace", type=Path, metavar="OUT.json", help="trace events for ui.perfetto.dev")
    option("--csv", type=Path, metavar="OUT.csv", help="residencies, in MiniMalloc's columns")
    option("--json", action="store_true", help="the plan as one JSON document")
    option(
        "--mode",
        choices=("feasible", "best", "exact"),
        default="best",
        help="feasible: the list scheduler of npu_compiler; best: a search; exact: that, and then a"
        " solver (OR-Tools, an extra), for small problems (default: best)",
    )
    add_number(parser, "capacity", "bytes that a FILE.csv may take, 0 for any", default=0, least=0)
    add_number(parser, "effort", "operations that the search decodes", default=EFFORT)
    add_number(parser, "seconds", "after which the best so far is taken", default=_SECONDS)
    add_seed(parser, "of the search")
    add_throughput(parser)
    add_target(parser)
    add_network_options(parser)
    parser.epilog = EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    quiet_libraries()
    if args.model.endswith(".csv"):
        from driver.commands.offsets import allocated

        return allocated(args)
    from driver.memory import Infeasible, Mode, plan
    from driver.report.shown_plan import ShownPlan

    if args.capacity:
        raise SettingsError(
            f"--capacity is of lifetimes in a .csv, and {args.model} has memories of its own",
            "`capacity_nbytes` of a memory in a problem",
        )
    made = _problem(args)
    problem = made.problem
    compared = None if args.compare is None else _other(args.compare, problem)
    found = made.plan or plan(
        problem,
        mode=Mode(args.mode),
        seed=args.seed,
        effort=args.effort,
        seconds=args.seconds,
    )
    if isinstance(found, Infeasible):
        print(json.dumps({"infeasible": found.why}) if args.json else printable_lines(found.why))
        return 1
    _require_proof(problem, found)
    shown = ShownPlan(str(args.model), problem, found)
    _write(args, shown, compared)
    if args.json:
        print(found.to_json())
        return 0
    _print(shown, args.seed)
    for line in made.lines:
        print(printable_lines(line))
    if compared is not None:
        print()
        _print(compared, args.seed)
    return 0


def _problem(args: argparse.Namespace) -> NetworkProblem:
    from driver.commands.network_plan import NetworkProblem, network_problem
    from driver.memory import Problem

    if not args.model.endswith(".json"):
        return network_problem(args)
    for option, instead in (
        ("measured", "`samples` of its operations"),
        ("throughput", "more ops"),
    ):
        if getattr(args, option) is not None:
            raise SettingsError(
                f"--{option} is of networks, and {args.model} says itself what there is", instead
            )
    return NetworkProblem(Problem.from_json(_read(Path(args.model))))


def _other(path: Path, problem: Problem) -> ShownPlan:
    from driver.memory import Plan, validate
    from driver.report.shown_plan import ShownPlan

    other = Plan.from_json(_read(path))
    verdict = validate(problem, other)
    if not verdict:
        raise UserError(
            f"{path} is no plan of this problem ({verdict.name}): {verdict.why}",
            "a plan that `tilefarm plan --json` wrote for the same problem",
        )
    return ShownPlan(str(path), problem, other)


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except OSError as error:
        raise unreadable(path, error, "name a file that is there") from None
    except ValueError as error:
        raise DataError(f"{path}: {error}", "name a file of JSON") from None


def _require_proof(problem: Problem, found: Plan) -> None:
    from driver.memory import validate

    verdict = validate(problem, found)
    assert verdict, f"the plan is wrong ({verdict.name}): {verdict.why}"


def _write(args: argparse.Namespace, shown: ShownPlan, compared: ShownPlan | None) -> None:
    from driver.atomic_write import write_atomically
    from driver.report.memory_files import plan_csv, plan_trace
    from driver.report.memory_page import memory_page

    both = (shown,) if compared is None else (shown, compared)
    files: dict[Path | None, Callable[[], str]] = {
        args.html: lambda: memory_page(both),
        args.trace: lambda: plan_trace(shown.problem, shown.plan),
        args.csv: lambda: plan_csv(shown.plan),
    }
    for path, text in files.items():
        if path is None:
            continue
        try:
            write_atomically(path, text().encode())
        except OSError as error:
            raise unwritable(path, error, "name a file in a folder that there is") from None


def _print(shown: ShownPlan, seed: int) -> None:
    from driver.report.terminal.memory_text import plan_lines

    print(printable_lines(shown.name))
    for line in plan_lines(shown.problem, shown.plan, seed=seed):
        print(printable_lines(line))
