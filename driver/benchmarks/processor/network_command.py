"""What `tilefarm bench processor --networks` measures and says."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from tilefarm.command_line import whole_from
from tilefarm.errors import SettingsError

from driver.benchmarks.command_line import gated, tell
from driver.benchmarks.figures import figure_table
from driver.benchmarks.processor.networks import (
    NETWORKS,
    NetworkBench,
    network_figures,
    network_table,
)
from driver.commands.options.shared import add_number
from driver.environment import machine
from driver.program.onnx_runtime import INSTALL, has_peer, peer_version
from driver.tune.settings import DEFAULT_TRIALS


def add_network_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of networks."""
    option = parser.add_argument
    option(
        "--networks",
        metavar="NAME,...",
        nargs="?",
        const=",".join(NETWORKS),
        help="whole networks instead of layers (without names: all)",
    )
    option("--zoo", type=Path, metavar="FOLDER", help="has models/*.onnx, for networks")
    option("--threads", default="1,2", metavar="N,...", help="of networks (default: 1,2)")
    add_number(parser, "trials", "of a network's search", default=DEFAULT_TRIALS, least=1)
    option(
        "--again",
        type=whole_from(1),
        metavar="N",
        help="search each network once more, with so many trials",
    )


def run_networks(args: argparse.Namespace) -> int:
    """Do it; the exit code.

    Raises:
        SettingsError: an option names no network or is no number of threads.
    """
    names = args.networks.split(",")
    if unknown := [name for name in names if name not in NETWORKS]:
        raise SettingsError(
            f"--networks: no {', '.join(map(repr, unknown))}", f"some of {', '.join(NETWORKS)}"
        )
    words = args.threads.split(",")
    if not all(each.isdecimal() and int(each) for each in words):
        raise SettingsError(f"--threads: {args.threads!r} is no list of numbers", "1,2")
    with tempfile.TemporaryDirectory(prefix="tilefarm-processor-") as folder:
        bench = NetworkBench(
            folder=Path(folder), zoo=args.zoo, trials=args.trials, again=args.again, say=_say
        )
        measured = [bench.measure(name, int(each)) for name in names for each in words]
    is_longer = args.again is not None and args.again > args.trials
    figures = list(network_figures(measured, longer=is_longer))
    version = peer_version() if has_peer() else None
    said = f"no ONNX Runtime: {INSTALL}" if version is None else f"ONNX Runtime {version}"

    def document() -> dict[str, Any]:
        return {
            "machine": machine(),
            "onnxruntime": version,
            "trials": args.trials,
            "again": args.again,
            "networks": [each.document() for each in measured],
            "figures": [figure.row() for figure in figures],
        }

    head = f"machine  {machine()}; batch 1, int8, {args.trials} trials"
    tell(args, (head, said, *network_table(measured), *figure_table(figures)), document)
    return gated(args, figures)


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
