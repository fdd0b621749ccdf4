"""The options that say which Ray cluster: the same ones in every command that asks one."""

from __future__ import annotations

import argparse
from pathlib import Path

from tilefarm.trust.credentials import read_token

from driver.jobs.dashboard import Dashboard


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Those of a command that asks a cluster."""
    option = parser.add_argument_group("cluster").add_argument
    option(
        "--cluster",
        required=True,
        metavar="HOST:PORT",
        help="the dashboard of a Ray cluster; beyond this machine an https address",
    )
    option("--cluster-token", type=Path, metavar="FILE", help="the cluster's token")


def dashboard_of(args: argparse.Namespace) -> Dashboard:
    """The cluster that the options name.

    Raises:
        SettingsError: the address is none, or the token cannot be read.
    """
    token = read_token(args.cluster_token) if args.cluster_token else ""
    return Dashboard(args.cluster, token)
