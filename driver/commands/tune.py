"""`tilefarm tune`: import, quantize, search, assemble, check and report a network."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from tilefarm.clock import SystemClock
from tilefarm.quiet import quiet_libraries
from tilefarm.watch.operations import add_operation_options, operations

from driver.commands.options.farm import add_farm_options, farm_settings, given
from driver.commands.options.judging import add_judge_option, add_promise_option
from driver.commands.options.networks import MODEL, add_network_options
from driver.commands.options.quantizing import quantization
from driver.commands.options.shared import add_records_option
from driver.tune.settings import (
    DEFAULT_LEAST_GAIN,
    DEFAULT_PROPOSER,
    DEFAULT_TRIALS,
    TuneSettings,
)
from tuner import PROPOSERS
from tuner.lookahead import USUAL

_MANY_TRIALS: Final = 100_000
"""Where a budget of time says when a search ends."""
_EPILOG = """\
examples:
  tilefarm tune net.onnx --calibrate data.npz
  tilefarm tune net.onnx --calibrate data.npz --evaluate test.npz --trials 1000 --out best
  tilefarm tune net_qdq.onnx                             scales are in the model
  tilefarm tune net.onnx --shape batch=1 --calibrate data.npz
  tilefarm tune faces.onnx --calibrate data.npz --judge embeddings
  tilefarm tune net.onnx --calibrate data.npz --evaluate test.npz --max-loss 0.5
  tilefarm tune zoo:resnet18 --trials 3000
  tilefarm tune zoo:resnet18 --trials 0 --records team.sqlite    the best that runs have left there
  tilefarm tune net.onnx --calibrate data.npz --schedules best/schedules.json --out rebuilt
  tilefarm tune net.onnx --calibrate data.npz --tracker farm:9190 --token-file farm.token

The data are arrays that numpy.savez wrote: x (inputs, samples first) and, to evaluate, y (labels):
classes [samples], or of each pixel [samples, H, W]; values or images of the output's shape; boxes
[samples, boxes, 5] of class, left, top, right, bottom. Answers are judged against labels and
against the float network's; boxes by IoU, embeddings (--judge embeddings) by their cosine.
Networks that come with tilefarm: zoo:digits (of `tilefarm demo`, trained), and with random weights
zoo:resnet18, zoo:mobilenet_v1, zoo:mobilenet_v2, zoo:squeezenet, zoo:resnet50, zoo:densenet121,
zoo:inception_v1, zoo:vgg19; these bring data to calibrate with.
On samples that did not calibrate the network, the integers may lose 1 point of accuracy; more is
said, with the layers to blame. --max-loss POINTS is a promise: layers stay in float until it is
kept, and exit code 2 says what comes nearest where it cannot be.
The same command with the same folder continues where an earlier one ended. Exit codes: 0 done,
2 bad input, 3 no device, 70 fault, 75 interrupted (continue with the same command), 130 killed.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("model", type=Path, metavar=MODEL, help="the trained network")
    option(
        "--evaluate",
        type=Path,
        metavar="DATA.npz",
        help="inputs and labels for the final check (default: the calibration data)",
    )
    add_judge_option(parser)
    add_promise_option(parser)
    option(
        "--compare",
        choices=["onnxruntime"],
        help="its times for the same model beside the program's, in turns, on --target cpu",
    )
    option(
        "--schedules",
        type=Path,
        metavar="FILE.json",
        help="build from these schedules, which a run has left in its folder, whatever has become"
        " of spaces since, and search nothing; with --trials so many candidates more, from these"
        " on, in the folder's `found` (default: search all)",
    )
    add_search_options(parser)
    add_network_options(parser)
    add_farm_options(parser)
    parser.epilog = _EPILOG


def add_search_options(parser: argparse.ArgumentParser) -> None:
    """The options that `demo` shares."""
    option = parser.add_argument
    option("--out", type=Path, metavar="DIR", help="output folder (default: tilefarm-out/MODEL)")
    option("--json", action="store_true", help="events and summary as JSON lines")
    add_trial_options(parser)
    add_records_option(
        parser,
        "each workload begins with the best schedule that other runs have left there, and what"
        " this one measures is added; with --trials 0 each gets that one trial"
        " (default: runs know nothing of one another)",
    )
    add_operation_options(parser)


def add_trial_options(parser: argparse.ArgumentParser) -> None:
    """What is searched, for how long: the options that `submit` shares."""
    option = parser.add_argument
    option(
        "--trials",
        type=int,
        metavar="N",
        help="candidates to measure over all workloads, of which each gets one at least"
        f" (default: {DEFAULT_TRIALS})",
    )
    option(
        "--least-gain",
        type=float,
        metavar="PERCENT",
        help="end when all that is left could save less of the network's time, as far as estimates,"
        f" bounds and trials tell (default: {DEFAULT_LEAST_GAIN:g}, and 0 where --trials says how"
        " many)",
    )
    names = ", ".join(PROPOSERS)
    option("--proposer", metavar="NAME", help=f"{names} (default: {DEFAULT_PROPOSER})")
    option("--seed", type=int, metavar="N", help="of everything random (default: 0)")
    option("--search-seed", type=int, metavar="N", help="of the search alone (default: as --seed)")
    option(
        "--search-seconds",
        type=float,
        metavar="S",
        help="end the search after so long, and go on with what it has found (default: never)",
    )
    option(
        "--device-seconds",
        type=float,
        metavar="S",
        help="end it when its candidates have kept devices busy for so long (default: never)",
    )
    option(
        "--lookahead",
        type=int,
        metavar="N",
        help="candidates out at a time: with more a large farm is busier, with fewer each is chosen"
        f" by more that is known (default: as the folder before, or {USUAL.most})",
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from driver.network import model_files, read_extents, short_name

    if args.out is None:
        args.out = Path("tilefarm-out") / short_name(args.model)
    files = model_files(args.model, args.calibrate, args.out.parent / "zoo")
    args.model, args.calibrate = files.model, files.calibration
    args.extents = read_extents(args.shape)
    return tune_with(args)


def decide_end(args: argparse.Namespace) -> None:
    """Whoever says how many trials gets them; else a search ends when it has nothing to gain."""
    if getattr(args, "schedules", None) is not None and args.trials is None:
        args.trials = 0
    if args.least_gain is None and args.trials is None:
        args.least_gain = DEFAULT_LEAST_GAIN
    if args.trials is None and (args.search_seconds or args.device_seconds):
        args.trials = _MANY_TRIALS


def tune_with(args: argparse.Namespace) -> int:
    """Run with complete options, and show it."""
    decide_end(args)
    settings = TuneSettings(
        farm=farm_settings(args),
        quantization=quantization(args),
        operations=operations(args),
        **given(args, TuneSettings),
    )
    began = SystemClock().wall_seconds()
    quiet_libraries()
    from driver.report.terminal.views import stdout_view
    from driver.tune.tuning_run import tune

    with stdout_view(as_json=args.json) as view:
        return tune(settings, view, began=began)
