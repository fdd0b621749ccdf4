"""`tilefarm device`: serve one board, or one simulated device, to a farm."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from driver.farm.quiet import quiet_libraries
from driver.farm.token import read_token


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("--name", required=True, help="unique in the farm")
    option("--target", default="sim", metavar="NAME|FILE.json", help="(default: sim)")
    option("--tracker", metavar="HOST:PORT", help="where to register")
    option("--token-file", type=Path, required=True, metavar="FILE", help="the farm's secret")
    option("--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="(default: any free port)")
    option("--folder", type=Path, metavar="DIR", help="keeps uploads (default: a temporary one)")
    option("--runtime", type=Path, metavar="LIB", help="a board's own VTA library")
    option("--die-with-parent", action="store_true", help=argparse.SUPPRESS)
    parser.epilog = (
        "example:\n"
        "  tilefarm device --name sim0 --tracker 127.0.0.1:9190 --token-file farm.token\n"
        "It prints `ready HOST:PORT` when it serves, and ends on Ctrl-C."
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    if args.folder is not None:
        return _serve(args, args.folder)
    with tempfile.TemporaryDirectory(prefix="tilefarm-device-") as folder:
        return _serve(args, Path(folder))


def _serve(args: argparse.Namespace, folder: Path) -> int:
    from tilefarm.target import load_target

    quiet_libraries()
    from device_server import server

    server.serve(
        name=args.name,
        target=load_target(args.target),
        tracker=args.tracker,
        listen=args.listen,
        token=read_token(args.token_file),
        folder=folder,
        runtime=args.runtime,
        on_ready=lambda address: print(f"ready {address}", flush=True),
        die_with_parent=args.die_with_parent,
    )
    return 0
