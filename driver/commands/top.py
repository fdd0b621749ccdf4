"""`tilefarm top`: what every device of a farm is doing, and who waits, as it changes."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from tilefarm.clock import SystemClock
from tilefarm.errors import SettingsError
from tilefarm.quiet import quiet_libraries
from tilefarm.rpc.calls import Devices
from tilefarm.trust.credentials import credentials

from driver.settings import add_tracker_options

if TYPE_CHECKING:
    from rich.console import Console, Group

    from device_server.tracker.client import TrackerClient


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
        raise SettingsError("top needs --tracker and --token-file", "those of your farm")
    if not args.every >= 0.1:
        raise SettingsError(f"--every {args.every:g}: must be at least 0.1", "--every 1")
    quiet_libraries()
    from device_server.tracker.client import TrackerClient

    with TrackerClient(args.tracker, credentials(args.token_file, args.tls)) as tracker:
        if args.json:
            print(json.dumps(asdict(tracker.overview())))
            return 0
        from rich.console import Console

        console = Console()
        if args.once or not console.is_terminal:
            console.print(view(tracker.overview()))
        else:
            watch(tracker, console, every_seconds=args.every)
    return 0


def watch(tracker: TrackerClient, console: Console, *, every_seconds: float) -> None:
    """Shows it on a terminal, again and again, until Ctrl-C."""
    from rich.live import Live

    clock = SystemClock()
    try:
        with Live(
            view(tracker.overview()), console=console, auto_refresh=False, screen=True
        ) as live:
            while True:
                clock.sleep(every_seconds)
                live.update(view(tracker.overview()), refresh=True)
    except KeyboardInterrupt:
        return


def view(farm: Devices) -> Group:
    """The tables of devices and of those who wait."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    busy = sum(bool(state.owner) for state in farm.states)
    out = sum(bool(state.draining or state.quarantine) for state in farm.states)
    head = (
        f"{len(farm.states)} devices: {busy} in use, {out} out of service;"
        f" {len(farm.waiting)} waiting"
    )
    devices = Table("device", "labels", "user", "for", "since", "out of service", box=None)
    for state in farm.states:
        labels = " ".join(f"{key}={value}" for key, value in state.device.labels)
        since = f"{state.leased_seconds:.0f} s" if state.owner else ""
        why = state.quarantine or state.draining
        # Text: names of others are no markup.
        cells = (state.device.name, labels, state.user, state.owner, since, why)
        devices.add_row(*map(Text, cells))
    line = Table("waiting for a device", "user", "priority", "since", box=None)
    for waiting in farm.waiting:
        words = (
            waiting.owner,
            waiting.user,
            str(waiting.priority),
            f"{waiting.waited_seconds:.0f} s",
        )
        line.add_row(*map(Text, words))
    return Group(Text(head), devices, *([line] if farm.waiting else []))
