"""`tilefarm jobs`: the jobs of a Ray cluster."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tilefarm.clock import SystemClock
from tilefarm.printable import printable, printable_words

from driver.commands.cluster_options import add_cluster_options, dashboard_of
from driver.jobs.responses import RayJob
from driver.jobs.shipping import RUN_KEY, title_of

if TYPE_CHECKING:
    from rich.table import Table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    add_cluster_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.epilog = "example:\n  tilefarm jobs --cluster 127.0.0.1:8265 --cluster-token ray.token"


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    jobs = [job for job in dashboard_of(args).jobs() if title_of(job)]
    if args.json:
        print(json.dumps([{**asdict(job), "run": job.metadata[RUN_KEY]} for job in jobs]))
        return 0
    from rich.console import Console

    Console().print(table(jobs, now_seconds=SystemClock().wall_seconds()))
    return 0


def table(jobs: list[RayJob], *, now_seconds: float) -> Table:
    """A row for each job."""
    from rich.table import Table
    from rich.text import Text

    made = Table("job", "model", "status", "exit code", "began", "for", box=None)
    for job in map(printable_words, jobs):
        began, ended = job.began_seconds, job.ended_seconds or now_seconds
        day = f"{datetime.fromtimestamp(began, UTC):%Y-%m-%d %H:%M} UTC" if began else ""
        span = f"{ended - began:.0f} s" if began else ""
        code = "" if job.exit_code is None else str(job.exit_code)
        # Text: names of others are no markup.
        made.add_row(*map(Text, (job.id, printable(title_of(job)), job.status, code, day, span)))
    return made
