"""`tilefarm tracker`: know the devices of a farm and lease them."""

from __future__ import annotations

import argparse
from pathlib import Path

from driver.farm.quiet import quiet_libraries
from driver.farm.token import create_token, read_token


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    parser.add_argument(
        "--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="(default: any free port)"
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        required=True,
        metavar="FILE",
        help="the farm's secret; written with a fresh one where it does not exist",
    )
    parser.add_argument("--die-with-parent", action="store_true", help=argparse.SUPPRESS)
    parser.epilog = (
        "example:\n"
        "  tilefarm tracker --listen 127.0.0.1:9190 --token-file farm.token\n"
        "It prints `ready HOST:PORT` when it serves, and ends on Ctrl-C."
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    quiet_libraries()
    from device_server import tracker

    path: Path = args.token_file
    token = read_token(path) if path.exists() else create_token(path)
    tracker.serve(
        listen=args.listen,
        token=token,
        on_ready=lambda address: print(f"ready {address}", flush=True),
        die_with_parent=args.die_with_parent,
    )
    return 0
