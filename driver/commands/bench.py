"""`tilefarm bench`: how long tilefarm takes and how good its kernels are, as medians."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from typing import Final

from tilefarm.clock import SystemClock

_RUNS: Final = 3
_STREAM_RUNS: Final = 21


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("what", choices=["demo", "simulator"], help="what to measure")
    option("--runs", type=int, metavar="N", help="whole runs (default: 3; of each stream: 21)")
    option("--trials", type=int, metavar="N", help="of each run (default: the demo's)")
    option("--no-ray", action="store_true", help="compile without Ray")
    option("--json", action="store_true", help="one JSON document")
    parser.epilog = "examples:\n  tilefarm bench demo --runs 5\n  tilefarm bench simulator"


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    if args.what == "simulator":
        return _simulator(args)
    from driver.bench import measure_demo, medians
    from driver.steps.machine import machine

    words = [] if args.trials is None else ["--trials", str(args.trials)]
    words += ["--no-ray"] * args.no_ray
    runs = []
    for number in range(max(1, args.runs or _RUNS)):
        runs.append(measure_demo(words, SystemClock()))
        if not args.json:
            print(f"run {number + 1}: {runs[-1].total_seconds:.1f} s", flush=True)
    middle = medians(runs)
    if args.json:
        document = {
            "machine": machine(),
            "median": asdict(middle),
            "runs": [asdict(one) for one in runs],
        }
        print(json.dumps(document))
        return 0
    print(f"machine                 {machine()}")
    print(f"runs                    {len(runs)}, medians below")
    print(f"total                   {middle.total_seconds:.1f} s")
    print(f"first measured kernel   {middle.first_measured_seconds:.1f} s")
    print(f"trials                  {middle.trials_per_second:.1f} a second")
    print(
        f"per trial               propose {1000 * middle.propose_seconds:.0f} ms,"
        f" compile {1000 * middle.compile_seconds:.0f} ms,"
        f" transfer {1000 * middle.transfer_seconds:.0f} ms,"
        f" run {1000 * middle.run_seconds:.0f} ms"
    )
    print(
        f"cycles                  {middle.default_cycles:.0f} -> {middle.best_cycles:.0f},"
        f" {middle.speedup:.2f}x"
    )
    print(f"differing images        {middle.differing:.0f}")
    print(f"memory                  {middle.peak_nbytes / 2**20:.0f} MiB at most")
    return 0


def _simulator(args: argparse.Namespace) -> int:
    from tilefarm.target import TARGETS

    from driver.steps.machine import machine
    from driver.vta.bench import document, measure_simulator, table

    runs = max(1, args.runs or _STREAM_RUNS)
    figures = measure_simulator(TARGETS["sim"], time.process_time, runs=runs)
    if args.json:
        print(json.dumps({"machine": machine(), **document(figures)}))
        return 0
    print(f"machine  {machine()}; processor time, medians of {runs} runs")
    for line in table(figures):
        print(line)
    return 0
