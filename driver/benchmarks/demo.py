"""`tilefarm bench demo`: whole runs of the demo in fresh processes, and their medians."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from tilefarm.clock import Clock, SystemClock
from tilefarm.command_line import whole_from
from tilefarm.errors import InfraError
from tilefarm.interpreter import python_command

from driver.benchmarks.process_watch import ProcessWatch
from driver.commands.options.shared import add_number
from driver.environment import machine

_RUNS: Final = 3
_OF_SUMMARY: Final = (
    "first_measured_seconds",
    "trials_per_second",
    "default_cycles",
    "best_cycles",
    "speedup",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    option = parser.add_argument
    add_number(parser, "runs", "whole runs", default=_RUNS)
    option("--trials", type=whole_from(1), metavar="N", help="of each run (default: the demo's)")
    option("--no-ray", action="store_true", help="compile without Ray")


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    words = [] if args.trials is None else ["--trials", str(args.trials)]
    words += ["--no-ray"] * args.no_ray
    runs = []
    for number in range(args.runs):
        runs.append(measure_demo(words, SystemClock()))
        if not args.json:
            print(f"run {number + 1}: {runs[-1]['total_seconds']:.1f} s", flush=True)
    if args.json:
        print(json.dumps(_document(runs)))
    else:
        _print(medians(runs), len(runs))
    return 0


DemoFigures: TypeAlias = Mapping[str, float]
"""One run of the demo, or the medians of several, by name:

total_seconds: of the process, from its start to its end.
first_measured_seconds: from its start to the first measured kernel.
trials_per_second: while searching.
propose_seconds: per trial; so are compile, transfer and run. They overlap in wall time.
default_cycles, best_cycles: of the network's kernels, with untuned schedules and with the best.
speedup: the former by the latter.
peak_nbytes: proportional memory of all processes together, at its highest.
differing: images whose output on the device is not the reference's.
"""


def measure_demo(words: Sequence[str], clock: Clock) -> DemoFigures:
    """One demo from nothing, in a process of its own.

    Args:
        words: more options of `tilefarm demo`.

    Raises:
        InfraError: it failed.
    """
    with tempfile.TemporaryDirectory(prefix="tilefarm-bench-") as folder:
        out = Path(folder) / "out"
        began = clock.seconds()
        process = subprocess.Popen(
            python_command("-m", "driver.cli", "demo", "--json", "--out", str(out), *words),
            stdout=subprocess.PIPE,
            text=True,
        )
        with ProcessWatch(process.pid) as watch:
            stdout, _ = process.communicate()
        total = clock.seconds() - began
    if process.returncode:
        raise InfraError(f"the demo ended with exit code {process.returncode}")
    return figures_of(json.loads(stdout.splitlines()[-1]), total, watch.together_nbytes)


def medians(runs: Sequence[DemoFigures]) -> DemoFigures:
    """The median of every figure."""
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def _document(runs: Sequence[DemoFigures]) -> dict[str, Any]:
    return {
        "machine": machine(),
        "median": medians(runs),
        "runs": list(runs),
    }


def _print(middle: DemoFigures, runs: int) -> None:
    print(f"machine                 {machine()}")
    print(f"runs                    {runs}, medians below")
    print(f"total                   {middle['total_seconds']:.1f} s")
    print(f"first measured kernel   {middle['first_measured_seconds']:.1f} s")
    print(f"trials                  {middle['trials_per_second']:.1f} a second")
    print(
        f"per trial               propose {1000 * middle['propose_seconds']:.0f} ms,"
        f" compile {1000 * middle['compile_seconds']:.0f} ms,"
        f" transfer {1000 * middle['transfer_seconds']:.0f} ms,"
        f" run {1000 * middle['run_seconds']:.0f} ms"
    )
    print(
        f"cycles                  {middle['default_cycles']:.0f} -> {middle['best_cycles']:.0f},"
        f" {middle['speedup']:.2f}x"
    )
    print(f"differing images        {middle['differing']:.0f}")
    print(f"memory                  {middle['peak_nbytes'] / 2**20:.0f} MiB at most")


def figures_of(summary: dict[str, Any], total_seconds: float, peak_nbytes: int) -> DemoFigures:
    """Those of one run, from its summary."""
    trials = summary["trials_this_session"] or 1
    split = {key: seconds / trials for key, seconds in summary["split"].items()}
    said = {name: summary[name] for name in _OF_SUMMARY}
    return said | split | {
        "total_seconds": total_seconds,
        "peak_nbytes": peak_nbytes,
        "differing": summary["accuracy"]["differing"],
    }  # fmt: skip
