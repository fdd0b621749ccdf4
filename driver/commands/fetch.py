"""`tilefarm fetch`: bring what a job on a Ray cluster has made."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tilefarm.clock import SystemClock
from tilefarm.errors import OutputError
from tilefarm.names import RandomIds
from tilefarm.plural import plural
from tilefarm.readable import readable

from driver.commands.cluster_options import add_cluster_options, dashboard_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    parser.add_argument("job", metavar="JOB", help="one that has ended")
    parser.add_argument("--out", type=Path, metavar="DIR", help="(default: tilefarm-out/JOB)")
    add_cluster_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.epilog = (
        "example:\n"
        "  tilefarm fetch job-2f61 --out best --cluster 127.0.0.1:8265\n"
        "The folder is that of `tilefarm tune`: program/, report.html, records.sqlite and the rest."
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from driver.jobs.shipping import fetch

    out: Path = args.out or Path("tilefarm-out") / args.job
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OutputError(f"{out}: holds something", "choose an empty or a new folder with --out")
    dashboard = dashboard_of(args)
    job = dashboard.job(args.job)
    out.mkdir(parents=True, exist_ok=True)
    try:
        paths = fetch(
            dashboard, job, out, fetch_job=RandomIds().fresh("fetch"), clock=SystemClock()
        )
    finally:
        if not any(out.iterdir()):
            out.rmdir()
    if args.json:
        print(json.dumps([readable(path) for path in paths]))
    else:
        print(f"{out}: {plural(len(paths), 'file')} of {args.job}; open {out / 'report.html'}")
    return 0
