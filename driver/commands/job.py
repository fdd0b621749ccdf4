"""`tilefarm job`: a submitted job, on the cluster's machine; `tilefarm submit` starts it there."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from tilefarm.clock import SystemClock
from tilefarm.quiet import quiet_libraries
from tilefarm.trust.secret_file import make_folder

_OUT: Final = "out"
_INPUTS: Final = "inputs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and an example."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    run = actions.add_parser("run", help="tune what a job asks for; its files are in this folder")
    run.add_argument("folder", type=Path, help="for the runs of all jobs")
    run.add_argument("spec", help="the job, as `tilefarm submit` writes it")
    run.set_defaults(act=_run)
    send = actions.add_parser("send", help="print what a run has made, for `tilefarm fetch`")
    send.add_argument("folder", type=Path, help="with the runs of all jobs")
    send.add_argument("run_name", metavar="RUN", help="the name of one")
    send.set_defaults(act=_send)
    parser.epilog = (
        "example, as `tilefarm fetch` has it run:\n  tilefarm job send ~/jobs digits-5d1c"
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    code: int = args.act(args)
    return code


def _run(args: argparse.Namespace) -> int:
    from driver.jobs.spec import JobSpec
    from driver.network import load_plugin

    began = SystemClock().wall_seconds()
    spec = JobSpec.from_json(args.spec)
    spec.require_same_code()
    place = args.folder.expanduser().absolute() / spec.run
    args.out = place / _OUT
    make_folder(place)
    settings = spec.tune_settings(Path.cwd(), place / _INPUTS, args.out)
    for plugin in settings.plugins:
        load_plugin(str(plugin))
    os.chdir(place)  # Ray's folder of the job is Ray's to remove
    settings = replace(settings, farm=replace(settings.farm, ray_address="auto"))
    quiet_libraries()
    from driver.report.terminal.views import stdout_view
    from driver.tune.tuning_run import tune

    with stdout_view(as_json=False) as view:
        return tune(settings, view, began=began)


def _send(args: argparse.Namespace) -> int:
    from driver.jobs.transfer import lines_of

    for line in lines_of(args.folder.expanduser() / args.run_name / _OUT):
        print(line)
    return 0
