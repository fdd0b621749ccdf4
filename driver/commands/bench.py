"""`tilefarm bench`: how long tilefarm takes and how good its kernels are."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Mapping
from typing import Final

from tilefarm.errors import SettingsError

from driver.commands import add_command, load

BENCHMARKS: Final[Mapping[str, tuple[str, str]]] = {
    "board": ("driver.benchmarks.board", "searches by a noisy clock, judged by exact cycles"),
    "compare": (
        "driver.jobs.nightly.compare",
        "cycles of one night against another's, with verdicts",
    ),
    "compiler": ("driver.benchmarks.compiler", "time from trace to shared object, by stage"),
    "cpu": ("driver.benchmarks.cpu", "seconds of operators on the processor, by vector unit"),
    "demo": ("driver.benchmarks.demo", "whole runs of the demo, from nothing to the tuned program"),
    "farm": ("driver.benchmarks.farm.command", "what a farm costs, and what gives way first"),
    "kernels": (
        "driver.benchmarks.kernels",
        "cycles of ResNet-18's convolutions, against the old flow",
    ),
    "large": (
        "driver.benchmarks.large",
        "large networks, from file to program: seconds and memory",
    ),
    "memory": (
        "driver.benchmarks.memory.command",
        "offsets of buffers: seconds, nodes, and what is proved",
    ),
    "network": (
        "driver.benchmarks.network",
        "cycles or seconds of a whole network, a row a step",
    ),
    "nightly": (
        "driver.benchmarks.nightly.command",
        "false alarms of nights, slowdowns found, and what a history takes",
    ),
    "processor": (
        "driver.benchmarks.processor.command",
        "layers on this machine's processor, beside oneDNN",
    ),
    "promise": (
        "driver.benchmarks.promise.command",
        "promises of accuracy: kept on other samples too, and at which cost",
    ),
    "quantize": (
        "driver.benchmarks.quantize",
        "time from a float network to integers, beside the plainest way",
    ),
    "scripts": (
        "driver.benchmarks.scripts",
        "users' scripts on the processor: plain loops, the space's default, the best point",
    ),
    "seed": (
        "driver.benchmarks.seed",
        "the same search many times, under load and kills: one result",
    ),
    "simulator": (
        "driver.benchmarks.simulator",
        "speed of the simulator on ResNet-18's convolutions",
    ),
    "tuner": (
        "driver.benchmarks.tuner.command",
        "trials that searches need, by proposer, in exact cycles",
    ),
    "validity": (
        "driver.benchmarks.validity",
        "what a space allows is right, the rest really fails",
    ),
    "zoo": ("driver.benchmarks.zoo.command", "accuracy of trained networks, from file to device"),
}
"""Name of the benchmark: (module, caption)."""

_ABSENT: Final = """\
Benchmarks are a part of tilefarm's source tree, not of its wheel, which has `compare` alone. For
the others: pip install --editable . in a checkout of tilefarm."""

_EPILOG: Final = """\
examples:
  tilefarm bench demo --runs 5
  tilefarm bench simulator --json
  tilefarm bench WHAT --help
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the benchmarks with their options."""
    parser.epilog = _EPILOG
    if not all(_is_installed(module) for module, _ in BENCHMARKS.values()):
        parser.epilog = f"{_ABSENT}\n\n{_EPILOG}"
    benchmarks = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, (module, caption) in BENCHMARKS.items():
        if not _is_installed(module):
            # No word of what was asked for looks like an option: whatever it is, `run` answers.
            one = benchmarks.add_parser(name, help=caption, prefix_chars="\0", add_help=False)
            one.add_argument("words", nargs="*")
            continue
        one = add_command(benchmarks, name, caption)
        one.add_argument("--json", action="store_true", help="one JSON document")
        load(module).add_arguments(one)


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code.

    Raises:
        SettingsError: the benchmark is not installed.
    """
    module, _ = BENCHMARKS[args.what]
    if not _is_installed(module):
        raise SettingsError(
            f"bench {args.what} is not installed: benchmarks are a part of tilefarm's source tree,"
            " not of its wheel",
            "in a checkout of tilefarm: pip install --editable .",
        )
    return load(module).run(args)


def _is_installed(module: str) -> bool:
    """Whether the module is there; wheels are made without benchmarks."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # nor is the room that it is in
        return False
