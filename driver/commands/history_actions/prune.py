"""`tilefarm history prune`: old nights go, or what their layers took."""

from __future__ import annotations

import argparse

from tilefarm.command_line import whole_from
from tilefarm.plural import plural

from driver.commands.history_actions.choosing import opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--nights", type=whole_from(1), required=True, metavar="N", help="the last N stay"
    )
    parser.add_argument(
        "--layers",
        type=whole_from(0),
        metavar="N",
        help="of the last N nights what each layer took stays (default: of all that stay)",
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from driver.jobs.nightly.history.pruning import prune

    layers = args.nights if args.layers is None else args.layers
    with opened(args.history, read_only=False) as history, history.alone():
        gone = prune(history, nights=args.nights, layers=layers)
    print(
        f"{plural(gone.nights, 'night')} dropped, the layers of {plural(gone.layers, 'sample')},"
        f" {plural(gone.contents, 'content')} that nothing names any more"
    )
    return 0
