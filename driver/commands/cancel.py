"""`tilefarm cancel`: end a job on a Ray cluster; what it measured is kept."""

from __future__ import annotations

import argparse
import json

from tilefarm.clock import SystemClock
from tilefarm.command_line import EXIT_INTERRUPTED
from tilefarm.printable import printable

from driver.commands.cluster_options import add_cluster_options, dashboard_of
from driver.jobs.responses import RayJob


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
        print(printable(f"{job.id}: {_outcome(job)}"))
    return 0


def _outcome(job: RayJob) -> str:
    """How the job ended, which may have been before it was cancelled, and what comes next."""
    if job.status == "SUCCEEDED":
        return f"{job.status} before; `tilefarm fetch {job.id}` brings what it made"
    if job.status == "FAILED" and job.exit_code != EXIT_INTERRUPTED:
        return f"{job.status} before; `tilefarm logs {job.id}` says why"
    return f"{job.status}; the same `tilefarm submit` continues its run"
