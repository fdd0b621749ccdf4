"""`tilefarm submit`: have a network tuned on a Ray cluster."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tilefarm.clock import SystemClock
from tilefarm.names import RandomIds
from tilefarm.printable import printable

from driver.commands.cluster_options import add_cluster_options, dashboard_of
from driver.commands.options.farm import add_farm_options, farm_settings, given
from driver.commands.options.judging import add_judge_option, add_promise_option
from driver.commands.options.networks import MODEL, add_network_options
from driver.commands.options.quantizing import quantization
from driver.commands.tune import add_trial_options, decide_end
from driver.tune.settings import TuneSettings

_FOLDER: Final = "~/tilefarm-jobs"
_DEVICE_WAIT_SECONDS: Final = 3600.0
"""Nobody watches a job: it stands in line for devices, behind others that hold them all."""

_EPILOG = """\
examples:
  tilefarm submit net.onnx --calibrate data.npz --trials 1000 --cluster 127.0.0.1:8265 \\
      --cluster-token ray.token
  tilefarm submit net.onnx --calibrate data.npz --cluster https://ray.example:443 \\
      --cluster-token ray.token --tracker farm:9190 --token-file /etc/tilefarm/token \\
      --tls /etc/tilefarm/tls --signing-key /etc/tilefarm/signing.key
  ssh -L 8265:127.0.0.1:8265 HEAD                  a cluster whose dashboard is on its loopback

The job runs `tilefarm tune` on the cluster's head and compiles on all its nodes, where the same
tilefarm is installed. The model, files with weights beside it, data and the files of --plugin are
uploaded, once; no secret is: --token-file, --tls and --signing-key name files of the head.
`tilefarm jobs`, `logs`, `cancel` and `fetch` are about jobs. A job that was cancelled or lost is
continued by submitting it again: its run is in --folder. Where others fill the cluster it stands in
its queue for an hour.
`--target cpu` is the processor of the head; without --tracker a job's devices are there, too.
A job waits for devices for an hour, or --device-wait, and compiles on all CPUs, or --workers.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("model", type=Path, metavar=MODEL, help="the trained network")
    option("--evaluate", type=Path, metavar="DATA.npz", help="for the final check")
    add_judge_option(parser)
    add_promise_option(parser)
    option("--json", action="store_true", help="one JSON document")
    add_cluster_options(parser)
    option("--folder", default=_FOLDER, help=f"of runs, on the head (default: {_FOLDER})")
    option("--python", metavar="PATH", help="on the cluster (default: the one that runs Ray)")
    add_trial_options(parser)
    add_network_options(parser)
    add_farm_options(parser, ray=False)
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    from driver.farm.compiling.cluster import MOST_WORKERS
    from driver.jobs.shipping import interpreter, send
    from driver.jobs.spec import JobSpec
    from driver.jobs.watching import begun
    from driver.network import files_beside, import_for, model_files, read_extents, short_name
    from driver.targets import usable_target

    dashboard = dashboard_of(args)
    title = short_name(args.model)
    with tempfile.TemporaryDirectory(prefix="tilefarm-submit-") as scratch:
        files = model_files(args.model, args.calibrate, Path(scratch))
        args.model, args.calibrate = files.model, files.calibration
        args.extents = read_extents(args.shape)
        # What cannot be tuned is refused before anything is sent.
        target = usable_target(farm_settings(args).target)
        import_for(target, args.model, args.extents)
        cluster = dashboard.cluster()
        args.workers = args.workers or min(cluster.cpus, MOST_WORKERS)
        if args.device_wait_seconds is None:
            args.device_wait_seconds = _DEVICE_WAIT_SECONDS
        decide_end(args)
        settings = TuneSettings(
            out=Path(_FOLDER),
            farm=farm_settings(args),
            quantization=quantization(args),
            **given(args, TuneSettings),
        )
        spec, paths = JobSpec.of(settings, title, files_beside(args.model))
        sent = send(
            dashboard,
            spec,
            paths,
            job=RandomIds().fresh("job"),
            folder=args.folder,
            python=interpreter(cluster, args.python),
            say=lambda text: print(text, file=sys.stderr, flush=True),
        )
    begun(dashboard, sent.id, SystemClock())
    if args.json:
        print(json.dumps(asdict(sent)))
        return 0
    upload = f"{sent.uploaded_nbytes / 1e6:.1f} MB uploaded" if sent.uploaded_nbytes else "known"
    print(printable(f"{sent.id}: {title}, model and data {upload}, {cluster.cpus} CPUs"))
    print(printable(f"  tilefarm logs {sent.id} --follow --cluster {args.cluster}"))
    return 0
