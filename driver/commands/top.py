"""`tilefarm top`: what every device of a farm is doing, and who waits, as it changes."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from tilefarm.clock import SystemClock
from tilefarm.errors import SettingsError
from tilefarm.quiet import quiet_libraries
from tilefarm.trust.credentials import credentials

from driver.commands.options.farm import add_tracker_options

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from device_server.tracker.client import TrackerClient

_SOONEST_SECONDS: Final = 0.1
_LATEST_SECONDS: Final = 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    add_tracker_options(parser)
    option = parser.add_argument
    option("--once", action="store_true", help="print it once and end, as without a terminal")
    option("--json", action="store_true", help="one JSON document, once")
    option("--every", type=float, default=1.0, metavar="S", help="seconds (default: 1)")
    parser.epilog = (
        "example:\n"
        "  tilefarm top --tracker 127.0.0.1:9190 --token-file farm.token\n"
        "It ends on Ctrl-C."
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    if args.tracker is None or args.token_file is None:
        raise SettingsError(
            "top needs --tracker and --token-file",
            "--tracker HOST:PORT --token-file FILE with those of your farm",
        )
    if not _SOONEST_SECONDS <= args.every <= _LATEST_SECONDS:
        raise SettingsError(
            f"--every {args.every:g}: must be from {_SOONEST_SECONDS:g} to {_LATEST_SECONDS:g}",
            "--every 1",
        )
    quiet_libraries()
    from device_server.tracker.client import TrackerClient

    with TrackerClient(args.tracker, credentials(args.token_file, args.tls)) as tracker:
        if args.json:
            print(json.dumps(asdict(tracker.overview())))
            return 0
        from rich.console import Console

        from driver.report.terminal.farm_view import farm_view

        console = Console()
        if args.once or not console.is_terminal:
            console.print(farm_view(tracker.overview(), width=console.width))
        else:
            watch(tracker, console, every_seconds=args.every)
    return 0


def watch(tracker: TrackerClient, console: Console, *, every_seconds: float) -> None:
    """Shows it on a terminal, again and again, until Ctrl-C."""
    from rich.live import Live

    from driver.report.terminal.farm_view import farm_view

    def now() -> RenderableType:
        return farm_view(tracker.overview(), width=console.width, height=console.height)

    clock = SystemClock()
    try:
        with Live(now(), console=console, auto_refresh=False, screen=True) as live:
            while True:
                clock.sleep(every_seconds)
                live.update(now(), refresh=True)
    except KeyboardInterrupt:
        return
