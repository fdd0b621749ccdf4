"""`tilefarm bench large`: large networks from their files to programs that ran on samples."""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from tilefarm.clock import Clock, SystemClock
from tilefarm.errors import InfraError, SettingsError
from tilefarm.interpreter import python_command
from tilefarm.plural import plural

from driver.benchmarks.command_line import add_gate, gated
from driver.benchmarks.figures import Figure, figure_table
from driver.benchmarks.process_watch import ProcessWatch
from driver.commands.options.shared import add_number
from driver.environment import machine
from driver.farm.scratch import scratch_folder
from driver.network import (
    LARGE_TOPOLOGIES,
    TOPOLOGIES,
    random_images,
    write_topology,
)

_TRIALS: Final = 300
_SAMPLES: Final = 16
_CALIBRATION_SAMPLES: Final = 4
_MOST_SECONDS: Final = 300.0
_MOST_MIB: Final = 2048.0
_STEPS: Final = (
    "import",
    "quantize",
    "partition",
    "judge",
    "spaces",
    "search",
    "assemble",
    "evaluate",
    "profile",
)

_EPILOG: Final = f"""\
examples:
  tilefarm bench large
  tilefarm bench large vgg19 --gate
  tilefarm bench large resnet50 densenet121 --trials 100 --samples 4 --json

Networks with random weights are written as ONNX files, and each is tuned by a command of its own,
as a user would, on two simulators: imported, calibrated on {_CALIBRATION_SAMPLES} pictures,
searched, assembled, and run on --samples others in float, in integers and on the device. Seconds
are from the command's start to its end, with those of its steps below; processor seconds are those
of all its processes. Memory is the most that any one process held, what it shares with others
included; beside it that of all together, where shared memory counts once.

exit codes: 0 done; 1 a goal is missed, with --gate; 2 bad input; 70 a command fails
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"(default: {' '.join(LARGE_TOPOLOGIES)})"
    )
    add_number(parser, "trials", "of each network", default=_TRIALS, least=1)
    add_number(parser, "samples", "to run the programs on", default=_SAMPLES, least=1)
    add_gate(parser)
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    names = _names(args)
    rows: dict[str, list[dict[str, Any]]] = {}
    measured: list[Figure] = []
    for name in names:
        figures = list(measure(name, args.trials, args.samples, SystemClock()).figures())
        measured += figures
        rows[name] = [figure.row() for figure in figures]
        if not args.json:
            print(f"{name}, {plural(args.trials, 'trial')}, {plural(args.samples, 'sample')}")
            for line in figure_table(figures):
                print(f" {line}")
            print(flush=True)
    if args.json:
        document = {"machine": machine(), "trials": args.trials, "samples": args.samples}
        print(json.dumps(document | {"networks": rows}))
    return gated(args, measured)


def _names(args: argparse.Namespace) -> list[str]:
    """What to measure.

    Raises:
        SettingsError: an option is impossible.
    """
    for name in args.names:
        if name not in TOPOLOGIES:
            raise SettingsError(f"no network {name!r}", f"one of {', '.join(TOPOLOGIES)}")
    return args.names or list(LARGE_TOPOLOGIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeRun:
    """What one network took: seconds in all and by step, and the most memory."""

    seconds: float
    by_step: dict[str, float]
    processor_seconds: float
    largest_nbytes: int
    together_nbytes: int
    differing: int

    def figures(self) -> Iterator[Figure]:
        """With the goals."""
        yield Figure(name="file to program", value=self.seconds, unit="s", goal=_MOST_SECONDS)
        for step in _STEPS:
            yield Figure(name=f"  {step}", value=self.by_step.get(step, 0.0), unit="s")
        yield Figure(name="processor", value=self.processor_seconds, unit="s")
        largest, together = (n / 2**20 for n in (self.largest_nbytes, self.together_nbytes))
        yield Figure(name="largest process", value=largest, unit="MiB", goal=_MOST_MIB)
        yield Figure(name="all processes", value=together, unit="MiB")
        yield Figure(name="samples that differ", value=self.differing, unit="", goal=0)


def measure(name: str, trials: int, samples: int, clock: Clock) -> LargeRun:
    """Tune one of the topologies by the command.

    Raises:
        InfraError: the command failed.
    """
    with scratch_folder() as scratch:
        model, calibration, evaluation = (
            scratch / file for file in (f"{name}.onnx", "calibrate.npz", "evaluate.npz")
        )
        write_topology(name, model)
        np.savez(calibration, x=random_images(_CALIBRATION_SAMPLES))
        np.savez(evaluation, x=random_images(samples, seed=1))
        words = ["--calibrate", str(calibration), "--evaluate", str(evaluation)]
        words += ["--trials", str(trials), "--out", str(scratch / "out"), "--json"]
        return tuned(model, words, clock)


def tuned(model: Path, words: list[str], clock: Clock) -> LargeRun:
    """Run the command, and measure it.

    Raises:
        InfraError: it failed.
    """
    began = clock.seconds()
    with (
        subprocess.Popen(
            python_command("-m", "driver.cli", "tune", str(model), *words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        ProcessWatch(process.pid) as watch,
    ):
        stdout, stderr = process.communicate()
    seconds = clock.seconds() - began
    lines = [json.loads(line) for line in stdout.splitlines()]
    summary = lines[-1] if lines else {}
    differing = (summary.get("accuracy") or {}).get("differing")
    if differing is None:
        why = stderr.strip() or f"exit code {process.returncode}"
        raise InfraError(f"tilefarm tune {model.name} failed: {why}")
    return LargeRun(
        seconds=seconds,
        by_step=_by_step(lines),
        processor_seconds=watch.processor_seconds,
        largest_nbytes=watch.largest_nbytes,
        together_nbytes=watch.together_nbytes,
        differing=differing,
    )


def _by_step(lines: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds of the steps that ended, by the events of a run."""
    began: dict[str, float] = {}
    found: dict[str, float] = {}
    for line in lines:
        match line.get("event"):
            case "step_began":
                began[line["step"]] = line["seconds"]
            case "step_ended":
                found[line["step"]] = line["seconds"] - began[line["step"]]
    return found
