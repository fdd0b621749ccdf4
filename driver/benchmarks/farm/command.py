"""`tilefarm bench farm`: a farm under load, its figures beside goals, and its first bottleneck."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from tilefarm.clock import SystemClock
from tilefarm.errors import SettingsError
from tilefarm.plural import plural
from tilefarm.quiet import quiet_libraries

from driver.benchmarks.command_line import add_gate, gated
from driver.benchmarks.farm.boards import KERNEL_SECONDS, measure_boards
from driver.benchmarks.farm.clients import CLIENTS, HOLD_SECONDS
from driver.benchmarks.farm.figures import (
    Limit,
    board_figures,
    limits,
    real_figures,
    scale_figures,
    upload_figures,
)
from driver.benchmarks.farm.real import measure_real
from driver.benchmarks.farm.scale import FarmScale, measure_scale
from driver.benchmarks.farm.uploading import BLOB_NBYTES, measure_upload
from driver.benchmarks.figures import Figure, figure_table
from driver.commands.options.shared import add_number
from driver.environment import machine
from driver.farm.scratch import scratch_folder
from driver.report.terminal.text_table import text_table

_MOST: Final = 1e6
_DEFAULT: Final = FarmScale(
    devices=1000, workers=64, seconds=30.0, kernel_seconds=20.0, compile_seconds=0.2
)
_TRIALS: Final = 240
_BOARD_SHARE: Final = 4
"""A board's kernels take their time: so many times fewer trials do."""

_EPILOG: Final = f"""\
examples:
  tilefarm bench farm
  tilefarm bench farm --devices 1000 --workers 64 --gate
  tilefarm bench farm --devices 50 --seconds 5 --kernel-seconds 1 --trials 0

All of it speaks TLS with certificates on both sides, as a farm of several machines does, unless
--no-tls is there. First a search on two simulators with two compile processes, nothing left out,
and uploads of {BLOB_NBYTES >> 20} MiB to a simulator. Then a search of a quarter of the trials on
two boards: real device servers whose kernels sleep {KERNEL_SECONDS:g} s on the average, so that
candidates wait for devices. Then a tracker, the driver and all of --devices on this machine: device
servers are real ones, many in a process, but their kernels sleep, between half and one and a half
of --kernel-seconds, evenly, and compiles sleep --compile-seconds. First heartbeats alone. Then
leases as the devices would need them if each kernel had one of its own: --devices /
--kernel-seconds a second, renewed every 10 s of a kernel, at times that do not depend on earlier
answers; a lease is timed from when it was due. Then as many as can be: {CLIENTS} clients lease,
hold for {HOLD_SECONDS:g} s, give back, and so on. Then a search.

Devices have a candidate from the begin of its transfer to the end of its run; those without one
count where a compiled candidate waits. Simulators nearly always wait for compiles: what they lose
is the way of a candidate from its compile to the device, beside a kernel of a millisecond, so the
goal is the boards'. The driver's processor time is by candidates that compiled, with those that
were under way in the end. The farm's processor time of a trial is that of the driver, the tracker,
the devices and their runners, from when all had joined and the spaces were known, without compiles
and the kernel. The farm's wall time is that of proposal, transfer and run without the
kernel; it has no goal, because it counts the waits for a core that compiles keep busy.

exit codes: 0 done; 1 a goal is missed, with --gate; 2 bad input
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    for name, metavar, what in (
        ("devices", "N", "simulated devices"),
        ("workers", "N", "compile workers of their search"),
        ("seconds", "S", "of each load"),
        ("kernel-seconds", "S", "of a kernel, on the average"),
        ("compile-seconds", "S", "of a compile"),
    ):
        default = getattr(_DEFAULT, name.replace("-", "_"))
        option(
            f"--{name}",
            type=type(default),
            default=default,
            metavar=metavar,
            help=f"{what} (default: {default:g})",
        )
    what = "on simulators; 0 leaves them and the boards out"
    add_number(parser, "trials", what, default=_TRIALS, least=0)
    option("--no-tls", action="store_true", help="as a farm on one machine may be")
    add_gate(parser)
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    scale, tls = _scale(args), not args.no_tls
    quiet_libraries()
    clock = SystemClock()
    figures: list[Figure] = []
    document: dict[str, Any] = {"machine": machine(), "scale": asdict(scale), "tls": tls}
    if args.trials:
        with scratch_folder() as scratch:
            real = list(
                real_figures(measure_real(args.trials, tls=tls, scratch=scratch, clock=clock))
            )
        with scratch_folder() as scratch:
            real += upload_figures(measure_upload(tls=tls, scratch=scratch, clock=clock))
        trials = max(1, args.trials // _BOARD_SHARE)
        with scratch_folder() as scratch:
            busy = measure_boards(trials, tls=tls, scratch=scratch, clock=clock)
            boards = list(board_figures(busy))
        figures += real + boards
        document |= {"real": [f.row() for f in real], "boards": [f.row() for f in boards]}
        _tell(
            args,
            f"{plural(args.trials, 'trial')} on two simulators, two compile processes",
            figure_table(real),
        )
        _tell(args, f"{plural(trials, 'trial')} on two boards", figure_table(boards))
    with scratch_folder() as scratch:
        scaled = measure_scale(scale, tls=tls, scratch=scratch, clock=clock)
    simulated, bounds = list(scale_figures(scaled)), limits(scale, scaled)
    figures += simulated
    document |= {"simulated": [f.row() for f in simulated], "limits": list(map(asdict, bounds))}
    title = f"{scale.devices} simulated devices, {scale.workers} compile workers"
    _tell(args, title, figure_table(simulated))
    _tell(args, "devices that would take all of", _limit_table(bounds))
    _tell(args, f"first bottleneck: {bounds[0].resource}, at {bounds[0].devices:.0f} devices", ())
    if args.json:
        print(json.dumps(document))
    return gated(args, figures)


def _scale(args: argparse.Namespace) -> FarmScale:
    """What is asked for.

    Raises:
        SettingsError: an option is impossible.
    """
    scale = FarmScale(**{name: getattr(args, name) for name in asdict(_DEFAULT)})
    for name, value in asdict(scale).items():
        if not 0 < value < _MOST:
            option = f"--{name.replace('_', '-')}"
            raise SettingsError(
                f"{option} {value:g}: must be above 0 and below {_MOST:g}", f"{option} 1"
            )
    return scale


def _tell(args: argparse.Namespace, title: str, lines: Iterable[str]) -> None:
    if not args.json:
        print(title)
        for line in lines:
            print(f" {line}")
        print(flush=True)


def _limit_table(bounds: Sequence[Limit]) -> Iterator[str]:
    return text_table(("", "devices"), [(b.resource, f"{b.devices:.0f}") for b in bounds])
