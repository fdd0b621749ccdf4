"""`python -m device_server device|tracker`: the servers of a farm where only this package is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn, Protocol

from tilefarm.command_line import HelpFormatter, Parser, guarded, leave

from device_server.device import command as device_command
from device_server.tracker import command as tracker_command


class Server(Protocol):
    """What the module of a server offers to a command line."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options and the examples."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Serve until a signal comes; the exit code."""
        ...


_SERVERS: Final[Mapping[str, tuple[Server, str]]] = {
    "device": (device_command, "serve one device of a farm"),
    "tracker": (tracker_command, "serve the tracker of a farm"),
}
"""Name of the server: (module, caption). `tilefarm device` and `tilefarm tracker` are the same."""


def main(argv: Sequence[str]) -> int:
    """Serve until a signal comes; the exit code."""

    def body() -> int:
        args = _parser().parse_args(argv)
        return _SERVERS[args.server][0].run(args)

    server = next(iter(argv), "")
    where = f"tilefarm-{server if server in _SERVERS else 'device'}"
    return guarded(lambda: where, body)


def device() -> NoReturn:
    """What an installed `tilefarm-device` runs."""
    leave(main(["device", *sys.argv[1:]]))


def tracker() -> NoReturn:
    """What an installed `tilefarm-tracker` runs."""
    leave(main(["tracker", *sys.argv[1:]]))


def _parser() -> argparse.ArgumentParser:
    top = Parser(prog="python -m device_server", description=__doc__)
    servers = top.add_subparsers(dest="server", metavar="SERVER", required=True)
    for name, (module, caption) in _SERVERS.items():
        one = servers.add_parser(name, help=caption, formatter_class=HelpFormatter)
        module.add_arguments(one)
    return top


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
