"""`tilefarm tracker`: know the devices of a farm and lease them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from tilefarm.errors import SettingsError
from tilefarm.quiet import quiet_libraries
from tilefarm.rpc.security import security
from tilefarm.server_options import add_security_options
from tilefarm.trust.credentials import create_token, read_token
from tilefarm.watch.operations import add_operation_options, operations

from device_server.server import lifetime

_MOST: Final = 1e6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    parser.add_argument(
        "--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="(default: any free port)"
    )
    add_security_options(
        parser, "the farm's one secret; written with a fresh one where it does not exist"
    )
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="keeps devices and leases through a restart"
    )
    option = parser.add_argument_group("fair use").add_argument
    option("--leases-per-user", type=int, metavar="N", help="at a time (default: all there are)")
    option(
        "--calls-per-user",
        type=float,
        metavar="N",
        help="a second, with --tokens (default: as many as they like)",
    )
    add_operation_options(parser)
    parser.add_argument("--die-with-parent", action="store_true", help=argparse.SUPPRESS)
    parser.epilog = (
        "example:\n"
        "  tilefarm tracker --listen 127.0.0.1:9190 --token-file farm.token\n"
        "`tilefarm pki --help` says how to serve other machines.\n"
        "It prints `ready HOST:PORT` when it serves, and ends on Ctrl-C."
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    quiet_libraries()
    from device_server.tracker import process
    from device_server.tracker.limits import TableLimits

    path: Path | None = args.token_file
    secret = None
    if path is not None and args.tokens is not None:
        raise SettingsError(
            "--token-file is one secret for all, --tokens a table of many", "give one of the two"
        )
    _require_limits(args)
    if path is not None:
        secret = read_token(path) if path.exists() else create_token(path)
    process.serve(
        listen=args.listen,
        security=security(
            secret, args.tokens, tls=args.tls, audit=args.audit, revoked=args.revoked
        ),
        state=args.state,
        limits=TableLimits(leases_per_user=args.leases_per_user),
        calls_per_user=args.calls_per_user,
        on_ready=lifetime.announce,
        operations=operations(args),
        die_with_parent=args.die_with_parent,
    )
    return 0


def _require_limits(args: argparse.Namespace) -> None:
    """Nothing if the limits of users can be kept."""
    for option in ("leases_per_user", "calls_per_user"):
        value = getattr(args, option)
        if value is not None and not 1 <= value <= _MOST:
            name = f"--{option.replace('_', '-')}"
            raise SettingsError(
                f"{name} {value:g}: must be from 1 to {_MOST:g}", "leave it out for no limit"
            )
    if args.calls_per_user is not None and args.tokens is None:
        raise SettingsError(
            "--calls-per-user needs users, and a farm with one secret knows none",
            "--tokens with a table that `tilefarm pki token` wrote",
        )
