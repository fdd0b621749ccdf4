"""A server's telemetry: its log, in moderation, and numbers that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tilefarm.clock import Clock
from tilefarm.trust.tls import TlsFolder
from tilefarm.watch.log import Log
from tilefarm.watch.metrics import Metric, Metrics
from tilefarm.watch.operations import Operations
from tilefarm.watch.prometheus import metrics_at

from device_server.server.counted import Rule, counted
from device_server.server.rate_limited_log import rate_limited


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """Where a server tells what happens.

    Attributes:
        log: leaves lines out where one event happens too often, and counts every event.
        metrics: the numbers.
    """

    log: Log
    metrics: Metrics


@contextmanager
def telemetry_of(
    log: Log,
    clock: Clock,
    operations: Operations,
    tls: TlsFolder | None,
    *,
    table: Sequence[Metric],
    rules: Mapping[str, Rule],
) -> Iterator[Telemetry]:
    """The telemetry of a server; its numbers are served while the block lasts.

    Args:
        log: where lines go.
        clock: says which lines are too many.
        operations: where Prometheus reads.
        tls: off loopback, the certificates of both sides.
        table: the metrics that there are.
        rules: which of them an event of the log changes.

    Raises:
        SettingsError: see `metrics_at`.
    """
    with metrics_at(operations.metrics, table, log=log, tls=tls) as metrics:
        yield Telemetry(log=counted(rate_limited(log, clock), metrics, rules), metrics=metrics)
