"""How a process of the farm is watched: the style of its log, and where its metrics are read."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final

from tilefarm.address import check_address
from tilefarm.errors import SettingsError
from tilefarm.watch.log import Level, LogFormat, LogStyle


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """Options that every process of the farm has.

    Attributes:
        log_format, log_level: of its log.
        metrics: `host:port` where Prometheus reads; None: nothing is counted.
    """

    log_format: LogFormat = LogFormat.TEXT
    log_level: Level = Level.INFO
    metrics: str | None = None

    def __post_init__(self) -> None:
        if self.metrics is not None:
            if self.metrics.startswith("unix:"):
                raise SettingsError(
                    f"--metrics {self.metrics}: Prometheus reads over HTTP", "127.0.0.1:9464"
                )
            check_address(self.metrics, free_port=True)

    @property
    def style(self) -> LogStyle:
        """Of the log's lines."""
        return LogStyle(format=self.log_format, level=self.log_level)


UNWATCHED: Final = Operations()


def add_operation_options(parser: argparse.ArgumentParser) -> None:
    """The options of `Operations`."""
    option = parser.add_argument_group("operations").add_argument
    option(
        "--log-format",
        choices=[each.value for each in LogFormat],
        help="lines of words, or of JSON (default: text)",
    )
    option(
        "--log-level",
        choices=[each.name.lower() for each in Level],
        help="events below it are not written (default: info)",
    )
    option(
        "--metrics",
        metavar="HOST:PORT",
        help="where Prometheus reads (default: nowhere); a server's off loopback with --tls only",
    )


def operations(args: argparse.Namespace) -> Operations:
    """The record that the options say.

    Raises:
        SettingsError: the address is none.
    """
    return Operations(
        log_format=LogFormat(args.log_format) if args.log_format else UNWATCHED.log_format,
        log_level=Level[args.log_level.upper()] if args.log_level else UNWATCHED.log_level,
        metrics=args.metrics,
    )
