"""`tilefarm device`: serve one board, or one simulated device, to a farm."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from tilefarm.quiet import quiet_libraries
from tilefarm.rpc.security import security
from tilefarm.sandbox import SandboxLevel
from tilefarm.server_options import (
    add_label_option,
    add_sandbox_option,
    add_security_options,
)
from tilefarm.trust.credentials import credentials
from tilefarm.watch.operations import add_operation_options, operations

from device_server.device.temporary import temporary_folder
from device_server.server import lifetime

_STAND_IN: Final = "stand-in"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the examples."""
    option = parser.add_argument
    option("--name", help="unique in the farm")
    option("--target", default="sim", metavar="NAME|FILE.json", help="(default: sim)")
    option("--tracker", metavar="HOST:PORT", help="where to register")
    option("--hooks", type=Path, metavar="FILE", help="commands for its power and its bitstream")
    option("--self-test", action="store_true", help="run the known kernel, print, and end")
    add_security_options(parser, "the farm's one secret, or the device's token at the tracker")
    option("--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="(default: any free port)")
    option("--folder", type=Path, metavar="DIR", help="keeps uploads (default: a temporary one)")
    option(
        "--runtime",
        type=Path,
        metavar="LIB|stand-in",
        help="a board's own VTA library, or one that passes for a board: it counts no cycles, and"
        " lets them pass as real time",
    )
    option(
        "--runtime-env",
        type=_variable,
        action="append",
        metavar="NAME=VALUE",
        help="a variable for that library, which sees no other; TILEFARM_BOARD_MHZ=50 for example"
        " is the stand-in's clock (default: 100)",
    )
    add_label_option(option, "for those who lease, board=de10 for example")
    add_sandbox_option(
        option,
        "do not serve where kernels are confined less: none, seccomp (the default) or landlock",
    )
    option("--signing-key", type=Path, metavar="FILE", help="run artifacts signed with it only")
    option(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="that share the work of kernels on the processor (default: 1); a device that is a"
        " processor takes programs for so many threads alone",
    )
    add_operation_options(parser)
    option("--die-with-parent", action="store_true", help=argparse.SUPPRESS)
    parser.epilog = (
        "example:\n"
        "  tilefarm device --name sim0 --tracker 127.0.0.1:9190 --token-file farm.token\n"
        "  tilefarm device --self-test --target board.json --runtime libvta.so\n"
        "  tilefarm device --self-test --runtime stand-in --runtime-env TILEFARM_BOARD_MHZ=50\n"
        "It prints `ready HOST:PORT` when it serves, and ends on Ctrl-C. First it runs a kernel\n"
        "whose answer is known, on simulators its cycles too; if that is wrong it never serves.\n"
        "A library that counts no cycles, as boards have, is timed by the clock of this machine.\n"
        "Hooks are sections power_cycle (command, seconds) and bitstream (file, command, seconds,\n"
        "report); commands are lists of arguments; device_server/README.md has an example.\n"
        "exit codes: 2 an option is wrong, or the sandbox is too weak; 70 the self-test fails or\n"
        "cannot be made, or nothing is built"
    )


def run(args: argparse.Namespace) -> int:
    """Do it; the exit code."""
    if args.self_test:
        return _self_test(args)
    if args.folder is not None:
        return _serve(args, args.folder.absolute())  # the runner's children work elsewhere
    with temporary_folder("tilefarm-device-") as folder:
        return _serve(args, folder)


def _self_test(args: argparse.Namespace) -> int:
    from tilefarm.target import load_target

    from device_server.device.self_test import self_test

    target = load_target(args.target)
    proof = self_test(
        target,
        runtime=_runtime(args),
        environment=dict(args.runtime_env or ()),
        device=args.name or "here",
    )
    print(f"self-test of {target.name}: right answer, {proof}\nruntime: {proof.runtime}")
    return 0


def _runtime(args: argparse.Namespace) -> Path | None:
    from device_server.vta.library.native import find_stand_in

    chosen: Path | None = args.runtime
    return find_stand_in() if chosen == Path(_STAND_IN) else chosen


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _serve(args: argparse.Namespace, folder: Path) -> int:
    from tilefarm.errors import SettingsError
    from tilefarm.processors import require_processor, with_threads
    from tilefarm.target import load_target

    if args.threads < 1:
        raise SettingsError(f"--threads {args.threads} is less than 1", "1 for no helpers")
    target = load_target(args.target)
    if not target.has_accelerator:
        if args.threads > 1:
            target = with_threads(target, args.threads)
        require_processor(target)
    if args.name is None or args.tracker is None:
        raise SettingsError(
            "a device needs --name and --tracker, or --self-test alone",
            "--name sim0 --tracker HOST:PORT --token-file FILE",
        )
    if args.token_file is None:
        raise SettingsError(
            "a device needs --token-file", "--token-file with the file that the tracker wrote"
        )
    quiet_libraries()
    from device_server.device.hooks import NO_HOOKS, load_hooks
    from device_server.device.process import serve

    shown = credentials(args.token_file, args.tls, args.signing_key)
    serve(
        name=args.name,
        target=target,
        tracker=args.tracker,
        listen=args.listen,
        labels=tuple(args.labels or ()),
        security=security(
            shown.token, args.tokens, tls=args.tls, audit=args.audit, revoked=args.revoked
        ),
        credentials=shown,
        folder=folder,
        runtime=_runtime(args),
        environment=dict(args.runtime_env or ()),
        threads=args.threads,
        require_sandbox=args.require_sandbox or SandboxLevel.SECCOMP,
        on_ready=lifetime.announce,
        operations=operations(args),
        hooks=load_hooks(args.hooks) if args.hooks is not None else NO_HOOKS,
        die_with_parent=args.die_with_parent,
    )
    return 0
