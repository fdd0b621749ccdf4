"""`tilefarm logs`: what a job on a Ray cluster prints."""

from __future__ import annotations

import argparse

from tilefarm.clock import SystemClock
from tilefarm.printable import printable_lines

from driver.commands.cluster_options import add_cluster_options, dashboard_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    parser.add_argument("job", metavar="JOB", help="as `tilefarm submit` and `jobs` name it")
    parser.add_argument("--follow", action="store_true", help="go on until the job has ended")
    add_cluster_options(parser)
    parser.epilog = "example:\n  tilefarm logs job-2f61 --follow --cluster 127.0.0.1:8265"


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code, with --follow that of the job."""
    from driver.jobs.watching import followed

    dashboard = dashboard_of(args)
    if not args.follow:
        print(printable_lines(dashboard.log(args.job)), end="")
        return 0
    for piece in followed(dashboard, args.job, SystemClock()):
        print(printable_lines(piece), end="", flush=True)
    return dashboard.job(args.job).exit_code or 0
