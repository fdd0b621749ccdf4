"""`tilefarm bench promise`: `--max-loss` on trained networks, beside all bad layers in float."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tilefarm.errors import DataError, SettingsError

from driver.benchmarks.command_line import add_gate, gated, tell
from driver.benchmarks.figures import Figure, figure_table
from driver.benchmarks.isolated import Crashed, isolated
from driver.benchmarks.promise.keeping import Broken, PromiseResult, Wanted, keep
from driver.benchmarks.zoo.recipes import RECIPES
from driver.commands.options.shared import add_number, add_target
from driver.network import Promise
from driver.report.terminal.text_table import text_table
from driver.targets import accelerated_target

_ON_PROCESSORS: Final = "tilefarm tune NET.onnx --target cpu --max-loss POINTS"
"""Keeps a promise; plans are compared here by an accelerator's cycles."""
_POINTS: Final = 0.5
_MOST: Final = 1000
_NETWORKS: Final = tuple(
    name
    for name, recipe in RECIPES.items()
    if recipe.labelled and recipe.calibrate and recipe.metric == "accuracy"
)
"""Float networks with labels."""

_EPILOG: Final = f"""\
examples:
  tilefarm bench promise --data zoo
  tilefarm bench promise --data zoo vww_f32_float --max-loss 1 --gate

The folder is that of `tilefarm bench zoo`. A network is calibrated on the recipe's samples; what is
done for its layers (weights of 16 bits, or float) is chosen by every second one of the rest, and
what is lost is judged on the others, which nothing was chosen by: a promise holds where more is
lost there by less than two standard errors. Beside it every layer in float that adds more noise
than layers do on average, and the next ones until the promise is kept, as one would do without a
search. Plans that keep the promise are compared by cycles that are measured on the simulator, as
`tilefarm tune` does. Those of the table are estimates: the least that the accelerator needs, and
the processor's work.

networks: {", ".join(_NETWORKS)}
exit codes: 0 done; 1 a goal is missed, with --gate; 2 bad input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("names", nargs="*", metavar="NAME", help="only these networks (default: all)")
    option("--data", type=Path, required=True, metavar="FOLDER", help="the folder of the zoo")
    option(
        "--max-loss",
        type=float,
        default=_POINTS,
        metavar="POINTS",
        help=f"what is promised (default: {_POINTS:g})",
    )
    add_number(parser, "samples", "in each half at most", default=_MOST, least=2)
    add_number(parser, "jobs", "networks at a time", default=1, least=1)
    add_target(parser)
    add_gate(parser)
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    _ = Promise(points=args.max_loss, is_said=True)
    accelerated_target(args.target, on_processors=_ON_PROCESSORS)
    tasks = _tasks(args)
    ends: list[PromiseResult | Broken] = []
    for task, end in zip(tasks, isolated(keep, tasks, jobs=args.jobs), strict=True):
        ends.append(Broken(task.name, end.why) if isinstance(end, Crashed) else end)
        if not args.json:
            print(f"{task.name}: {_verdict(ends[-1])}", file=sys.stderr, flush=True)
    found = figures(ends)
    tell(args, tables(ends, found), lambda: document(ends, found))
    return gated(args, found)


def figures(ends: Sequence[PromiseResult | Broken]) -> list[Figure]:
    """What all networks come to, with goals."""
    kept = [end for end in ends if isinstance(end, PromiseResult)]
    shares = [end.share for end in kept]
    mean = math.exp(sum(map(math.log, shares)) / len(shares)) if shares else math.inf
    return [
        Figure(
            name="promises kept, as far as other samples can tell",
            value=sum(end.holds for end in kept),
            unit="",
            goal=len(ends),
            more_is_better=True,
        ),
        Figure(
            name="of these, no more is lost on the others either",
            value=sum(end.holds and end.kept.other <= end.points for end in kept),
            unit="",
        ),
        Figure(name="cycles by those of all bad layers in float", value=mean, unit="", goal=1.0),
        Figure(name="the most of any network", value=max(shares, default=math.inf), unit=""),
    ]


def tables(ends: Sequence[PromiseResult | Broken], found: Sequence[Figure]) -> Iterator[str]:
    """A row for each network, and the figures."""
    rows = [_row(end) for end in ends if isinstance(end, PromiseResult)]
    if rows:
        yield from text_table(_COLUMNS, rows)
        yield ""
    for end in ends:
        if isinstance(end, Broken):
            yield f"BROKEN  {end.name}: {end.why}"
    yield from (f"{end.name}: {end.how}" for end in ends if isinstance(end, PromiseResult))
    yield ""
    yield "points lost: on the samples that layers were chosen by / on the others"
    yield from figure_table(found)


def document(ends: Sequence[PromiseResult | Broken], found: Sequence[Figure]) -> dict[str, Any]:
    """Everything as JSON can say it."""
    return {
        "networks": [
            asdict(end) | {"holds": end.holds, "share": end.share}
            for end in ends
            if isinstance(end, PromiseResult)
        ],
        "broken": {end.name: end.why for end in ends if isinstance(end, Broken)},
        "figures": [
            figure.row() | {"value": figure.value if math.isfinite(figure.value) else None}
            for figure in found
        ],
    }


_COLUMNS: Final = (
    "network",
    "samples",
    "float",
    "integers",
    "kept",
    "+-",
    "bad in float",
    "layers",
    "bad",
    "cycles",
    "bad",
    "share",
    "holds",
)


def _row(end: PromiseResult) -> tuple[str, ...]:
    lost = (f"{way.chosen:.2f} / {way.other:.2f}" for way in (end.integers, end.kept, end.bad))
    integers, kept, bad = lost
    return (
        end.name,
        str(end.samples),
        f"{end.floats:.1f} %",
        integers,
        kept,
        f"{end.kept.spread:.2f}",
        bad,
        str(end.kept.layers),
        str(end.bad.layers),
        str(end.kept.cycles),
        str(end.bad.cycles),
        f"{end.share:.2f}",
        "yes" if end.holds else "NO",
    )


def _verdict(end: PromiseResult | Broken) -> str:
    if isinstance(end, Broken):
        return end.why
    return f"{end.how}: {end.share:.2f} of the cycles with all bad ones in float"


def _tasks(args: argparse.Namespace) -> list[Wanted]:
    """What to try.

    Raises:
        SettingsError: a name is unknown.
        DataError: the folder lacks a network.
    """
    for name in args.names:
        if name not in _NETWORKS:
            raise SettingsError(f"no network {name!r}", f"one of {', '.join(_NETWORKS)}")
    tasks = [
        Wanted(
            name=name,
            model=args.data / "models" / f"{name}.onnx",
            recipe=RECIPES[name],
            data=args.data / "data",
            points=args.max_loss,
            most=args.samples,
            target=args.target,
        )
        for name in args.names or _NETWORKS
    ]
    for task in tasks:
        if not task.model.is_file():
            raise DataError(f"no {task.model}", "--data FOLDER as `tilefarm bench zoo` takes it")
    return tasks
