"""Options that several commands around a farm's servers share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from tilefarm.sandbox import SandboxLevel


def add_security_options(parser: argparse.ArgumentParser, secret: str) -> None:
    """Those of a server that say how it knows and remembers its callers."""
    option = parser.add_argument_group("security").add_argument
    option("--token-file", type=Path, metavar="FILE", help=secret)
    option("--tokens", type=Path, metavar="FILE", help="the table of `tilefarm pki token`")
    option("--tls", type=Path, metavar="DIR", help="its certificates, from `tilefarm pki issue`")
    option("--revoked", type=Path, metavar="FILE", help="certificates that are refused")
    option("--audit", type=Path, metavar="FILE", help="gets a line for all that is done here")


def add_label_option(option: Callable[..., object], what: str) -> None:
    """`--label KEY=VALUE`, several times for several."""
    option("--label", type=_label, action="append", dest="labels", metavar="KEY=VALUE", help=what)


def add_sandbox_option(option: Callable[..., object], what: str) -> None:
    """`--require-sandbox LEVEL`."""
    option("--require-sandbox", type=_sandbox_level, metavar="LEVEL", help=what)


def _sandbox_level(text: str) -> SandboxLevel:
    try:
        return SandboxLevel(text)
    except ValueError:
        levels = ", ".join(SandboxLevel)
        raise argparse.ArgumentTypeError(f"{text!r} is none of {levels}") from None


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value
