"""Metrics for Prometheus: a page of numbers over HTTP; the only door to prometheus_client.

On loopback anybody of the machine may read; elsewhere the page asks for a certificate of the farm.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tilefarm.address import is_loopback
from tilefarm.errors import SettingsError
from tilefarm.threads import Breakage, start_thread
from tilefarm.trust.bind_policy import require_safe, why_not
from tilefarm.trust.tls import TlsFolder
from tilefarm.watch.log import Log
from tilefarm.watch.metrics import Kind, Metric, Metrics, NoMetrics
from tilefarm.watch.page_server import PageServer

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


@contextmanager
def metrics_at(
    address: str | None, table: Sequence[Metric], *, log: Log, tls: TlsFolder | None = None
) -> Iterator[Metrics]:
    """Metrics that are served at an address while the block lasts; None: that nobody reads.

    Args:
        address: `host:port`; port 0 for any free one, which the log says.
        table: the metrics that there are.
        log: says where they are read.
        tls: off loopback, the certificates of both sides.

    Raises:
        SettingsError: the address is taken, or off loopback without TLS; or the package is missing.
    """
    if address is None:
        yield NoMetrics()
        return
    require_safe(address, tls)
    if importlib.util.find_spec("prometheus_client") is None:
        raise SettingsError(
            "--metrics needs the package prometheus_client, which is not installed here",
            f"`{sys.executable} -m pip install prometheus-client`, or leave --metrics out",
        )
    from prometheus_client import CollectorRegistry, make_wsgi_app

    registry = CollectorRegistry()
    metrics = PrometheusMetrics(table, registry)
    host, _, port = address.rpartition(":")
    try:
        server = PageServer(
            host.strip("[]"),
            int(port),
            make_wsgi_app(registry),
            tls=None if is_loopback(address) else tls,
        )
    except OSError:
        raise SettingsError(*why_not(address)) from None
    broken = Breakage()
    thread = start_thread(server.serve_forever, name="metrics", broken=broken)
    log("metrics", address=f"{host}:{server.server_port}")
    try:
        yield metrics
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        broken.check()


MOST_SERIES: Final = 4096
"""Of one metric: twice as many as devices live; names of others are told as one."""

_OTHERS: Final = "others"


class PrometheusMetrics:
    """The table's metrics in a registry."""

    def __init__(self, table: Sequence[Metric], registry: CollectorRegistry) -> None:
        self._instruments = {metric: _instrument(metric, registry) for metric in table}
        self._series: dict[Metric, set[tuple[str, ...]]] = {metric: set() for metric in table}

    def add(self, metric: Metric, amount: float = 1.0, /, **labels: str) -> None:
        self._of(metric, labels).inc(amount)

    def set(self, metric: Metric, value: float, /, **labels: str) -> None:
        self._of(metric, labels).set(value)

    def observe(self, metric: Metric, value: float, /, **labels: str) -> None:
        self._of(metric, labels).observe(value)

    def _of(self, metric: Metric, labels: Mapping[str, str]) -> Any:
        instrument = self._instruments[metric]
        if not metric.labels:
            return instrument
        series, named = self._series[metric], tuple(labels[name] for name in metric.labels)
        if named not in series:
            if len(series) >= MOST_SERIES:
                return instrument.labels(*(_OTHERS for _ in named))
            series.add(named)
        return instrument.labels(*named)


def _instrument(metric: Metric, registry: CollectorRegistry) -> Any:
    from prometheus_client import Counter, Gauge, Histogram

    if metric.kind is Kind.HISTOGRAM:
        return Histogram(
            metric.name, metric.meaning, metric.labels, registry=registry, buckets=metric.buckets
        )
    kind = Counter if metric.kind is Kind.COUNTER else Gauge
    return kind(metric.name, metric.meaning, metric.labels, registry=registry)
