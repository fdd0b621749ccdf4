"""`tilefarm devices`: who is registered at a tracker."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from tilefarm.target import TARGETS

from driver.farm.quiet import quiet_libraries
from driver.farm.token import read_token


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    parser.add_argument("--tracker", required=True, metavar="HOST:PORT")
    parser.add_argument("--token-file", type=Path, required=True, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.epilog = "example:\n  tilefarm devices --tracker 127.0.0.1:9190 --token-file farm.token"


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    quiet_libraries()
    from device_server.client import TrackerClient

    with TrackerClient(args.tracker, read_token(args.token_file)) as tracker:
        devices = tracker.devices()
    if args.json:
        print(json.dumps([asdict(d) for d in devices]))
        return 0
    targets = {target.digest: name for name, target in TARGETS.items()}
    for device in devices:
        target = targets.get(device.target, device.target.short)
        print(f"{device.name:12} {target:12} {device.address:22} {device.sandbox}")
    if not devices:
        print("no device is registered")
    return 0
