"""`tilefarm bench zoo`: trained networks end to end, their accuracy against gates."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tilefarm.command_line import whole_from
from tilefarm.errors import DataError, SettingsError

from driver.benchmarks.command_line import EXIT_MISSED, add_gate, gated, tell
from driver.benchmarks.isolated import Crashed, isolated
from driver.benchmarks.zoo.attempt import attempt
from driver.benchmarks.zoo.goals import goals
from driver.benchmarks.zoo.recipes import NAMED_TOPOLOGIES, RECIPES, TOPOLOGY, UNKNOWN, ZooRecipe
from driver.benchmarks.zoo.records import Attempt, RefusedNetwork, Tried
from driver.benchmarks.zoo.tables import document, tables
from driver.commands.options.quantizing import add_quantization_options, quantization
from driver.commands.options.shared import add_number, add_target
from driver.program.onnx_runtime import check_peer
from driver.targets import playable_target

_EPILOG: Final = """\
examples:
  tilefarm bench zoo --data zoo
  tilefarm bench zoo --data zoo vww_f32_float mnist-8 --calibration percentile
  tilefarm bench zoo --data zoo --samples 20 --json
  tilefarm bench zoo --data zoo --onnxruntime --gate
  tilefarm bench zoo --data zoo --target cpu
  tilefarm bench zoo zoo:resnet18

The folder has `models/NAME.onnx` and `data/`. Float networks are calibrated on samples that are not
scored; every scored sample runs on the device (the simulator, or with --target cpu this machine's
processor) and is compared bit for bit with the integer reference. A network that is not in the
table of recipes, and one without data, gets seeded random inputs. Networks that give every range
are taken as they are: --equalize and --correct-bias are for the others. Without --data only the
networks run that come with tilefarm.

With --onnxruntime it runs on the same samples beside them, in float and in its own int8 (symmetric,
a scale for each channel, calibrated by the same data), and each network has its goals: at most one
point below it (half a point where the model was quantized before; where it scores below 50 %, 98 %
of the answers as in float), and no more noise than its int8.

exit codes: 0 all pass; 1 a score is below its gate, a sample differs, less than 98 % of the
multiply-accumulates are on the accelerator (if there is one), a network cannot be taken, or with
--gate (which needs --onnxruntime) a goal is missed; 2 bad input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("names", nargs="*", metavar="NAME", help="only these networks (default: all there are)")
    option("--data", type=Path, metavar="FOLDER", help="the folder of the zoo")
    option(
        "--samples", type=whole_from(1), metavar="N", help="labels to score at most (default: all)"
    )
    option("--onnxruntime", action="store_true", help="run ONNX Runtime on the same samples too")
    add_gate(parser)
    add_number(parser, "jobs", "networks at a time", default=1)
    add_target(parser)
    add_quantization_options(parser)
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    if args.gate and not args.onnxruntime:
        raise SettingsError("--gate: the goals are beside ONNX Runtime", "add --onnxruntime")
    if args.onnxruntime:
        check_peer()
    playable_target(args.target)
    chosen, skipped = _chosen(args)
    rows, refused = [], []
    for task, end in zip(chosen, isolated(attempt, chosen, jobs=args.jobs), strict=True):
        match end:
            case Tried():
                rows.append(end)
            case RefusedNetwork():
                refused.append(end)
            case Crashed(why=why):
                refused.append(RefusedNetwork(task.name, why))
        if task.says:
            print(f"{task.name}: {_verdict(end)}", file=sys.stderr, flush=True)
    tell(args, tables(rows, refused, skipped), lambda: document(rows, refused, skipped))
    missed = gated(args, [figure for row in rows for figure in goals(row)])
    return EXIT_MISSED if refused or any(row.findings for row in rows) else missed


def _verdict(end: Tried | RefusedNetwork | Crashed) -> str:
    if isinstance(end, Tried):
        return "; ".join(end.findings) or f"passes, {end.seconds:.1f} s"
    return end.why.splitlines()[0]


def _chosen(args: argparse.Namespace) -> tuple[list[Attempt], dict[str, str]]:
    """What to try, in the order of the table; and why others are skipped.

    Raises:
        SettingsError: a name is unknown.
        DataError: the folder is none.
    """
    there, skipped = _models(args.data)
    unknown = [name for name in args.names if name not in there and name not in skipped]
    if unknown:
        raise SettingsError(
            f"no network {unknown[0]!r}" + ("" if args.data else " without --data FOLDER"),
            f"one of {', '.join(there)}",
        )
    wanted = args.names or there
    tasks = [
        Attempt(
            name=name,
            model=model,
            recipe=recipe,
            data=(args.data or Path()) / "data",
            samples=args.samples,
            how=quantization(args),
            target=args.target,
            with_peer=args.onnxruntime,
            says=not args.json,
        )
        for name, (model, recipe) in there.items()
        if name in wanted
    ]
    return tasks, {name: why for name, why in skipped.items() if not args.names or name in wanted}


def _models(folder: Path | None) -> tuple[dict[str, tuple[str, ZooRecipe]], dict[str, str]]:
    """Model and recipe by name of what can be tried, and the reasons of what cannot."""
    there: dict[str, tuple[str, ZooRecipe]] = {}
    skipped: dict[str, str] = {}
    if folder is not None:
        files = {path.stem: path for path in _files(folder)}
        for name in dict.fromkeys((*RECIPES, *files)):
            if name in files:
                there[name] = str(files[name]), RECIPES.get(name, UNKNOWN)
            else:
                skipped[name] = f"no {folder / 'models' / name}.onnx"
    return there | {name: (name, TOPOLOGY) for name in NAMED_TOPOLOGIES}, skipped


def _files(folder: Path) -> Iterator[Path]:
    models = folder / "models"
    if not models.is_dir():
        raise DataError(f"--data {folder}: no folder {models}", "the folder with models/ and data/")
    yield from sorted(models.glob("*.onnx"))
