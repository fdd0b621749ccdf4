"""`tilefarm targets`: the built-in accelerators, or one as the JSON to start your own from."""

from __future__ import annotations

import argparse

from tilefarm.target import TARGETS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    parser.add_argument("--show", metavar="NAME|FILE.json", help="print one as JSON")
    parser.epilog = (
        "examples:\n"
        "  tilefarm targets\n"
        "  tilefarm targets --show sim > mine.json      then: tune --target mine.json"
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    if args.show is not None:
        from driver.targets import usable_target

        print(usable_target(args.show).to_json())
        return 0
    for name, target in TARGETS.items():
        vta, timing = target.vta, target.timing
        print(
            f"{name:10} {vta.batch}x{vta.block}x{vta.block} int8,"
            f" inp {vta.inp_depth} wgt {vta.wgt_depth} acc {vta.acc_depth} uop {vta.uop_depth}"
            f" elements, bursts of {1 << timing.log_burst_beats} x {timing.bus_nbytes} bytes"
            + (", ALU with MUL" if target.limits.alu_mul else "")
        )
    return 0
