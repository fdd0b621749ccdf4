"""`tilefarm cancel`: end a job on a Ray cluster; what it measured is kept."""

from __future__ import annotations

import argparse
import json

from tilefarm.clock import SystemClock

from driver.commands.cluster_options import add_cluster_options, dashboard_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    parser.add_argument("job", metavar="JOB", help="as `tilefarm submit` and `jobs` name it")
    add_cluster_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.epilog = "example:\n  tilefarm cancel job-2f61 --cluster 127.0.0.1:8265"


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from driver.jobs.watching import stopped

    job = stopped(dashboard_of(args), args.job, SystemClock())
    if args.json:
        print(json.dumps({"id": job.id, "status": job.status}))
    else:
        print(f"{job.id}: {job.status}; the same `tilefarm submit` continues its run")
    return 0
