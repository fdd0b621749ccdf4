"""Metrics: their table, the page that Prometheus reads, and who may read it."""

from __future__ import annotations

import argparse
import re
import socket
import ssl
import sys
import urllib.error
import urllib.request
from contextlib import ExitStack
from importlib import util
from pathlib import Path

import pytest
from kit.farm.parties import Parties
from tilefarm.errors import SettingsError
from tilefarm.trust.access import FarmRole
from tilefarm.trust.tls import AUTHORITY, IDENTITY, TlsFolder
from tilefarm.watch import metrics as m
from tilefarm.watch.log import Level, LogFormat
from tilefarm.watch.metrics import Kind, Metric, call_meter
from tilefarm.watch.operations import Operations, add_operation_options, operations
from tilefarm.watch.prometheus import metrics_at

ROOT = Path(__file__).resolve().parents[2]
TABLES = (m.TRACKER_METRICS, m.DEVICE_METRICS, m.RUN_METRICS)
ALL = {metric for table in TABLES for metric in table}


class Said:
    """A log that keeps where the page is."""

    def __init__(self) -> None:
        self.address = ""

    def __call__(self, event: str, *, level: Level = Level.INFO, **fields: object) -> None:
        self.address = str(fields["address"])


def page(address: str, context: ssl.SSLContext | None = None) -> str:
    scheme = "https" if context else "http"
    with urllib.request.urlopen(
        f"{scheme}://{address}/metrics", context=context, timeout=60
    ) as answer:
        return str(answer.read().decode())


def test_every_metric_is_in_a_table_and_says_what_it_is() -> None:
    assert {value for value in vars(m).values() if isinstance(value, Metric)} == ALL
    for metric in ALL:
        assert re.fullmatch(r"tilefarm_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
        assert bool(metric.buckets) == (metric.kind is Kind.HISTOGRAM)
        assert set(metric.labels) <= {"device", "event", "method", "state", "status", "workload"}


def test_the_readme_lists_every_metric() -> None:
    text = (ROOT / "device_server" / "README.md").read_text()
    listed = dict(re.findall(r"^\| `(tilefarm_\w+)` \| [^|]*\| ([^|]*) \|", text, re.M))
    assert listed == {metric.name: metric.meaning for metric in ALL}


def test_numbers_are_on_the_page() -> None:
    said = Said()
    with metrics_at("127.0.0.1:0", m.TRACKER_METRICS, log=said) as metrics:
        meter = call_meter(metrics)
        meter("Acquire", "OK", 0.004)
        meter("Acquire", "OK", 0.004)
        metrics.set(m.WAITING, 3)
        text = page(said.address)
    assert 'tilefarm_calls_total{method="Acquire",status="OK"} 2.0' in text
    assert 'tilefarm_call_seconds_bucket{le="0.005",method="Acquire"} 2.0' in text
    assert "tilefarm_waiting_clients 3.0" in text
    with pytest.raises(urllib.error.URLError):
        page(said.address)


def test_nothing_listens_unless_it_is_asked_for() -> None:
    with metrics_at(None, m.TRACKER_METRICS, log=Said()) as metrics:
        metrics.add(m.REGISTRATIONS)
        metrics.set(m.WAITING, 1)
        metrics.observe(m.LEASE_WAIT_SECONDS, 1)


def test_off_loopback_the_page_is_refused_without_tls() -> None:
    refused = metrics_at("0.0.0.0:0", m.TRACKER_METRICS, log=Said())
    with pytest.raises(SettingsError, match="is not on loopback, and without TLS"), refused:
        pass


def test_off_loopback_the_page_asks_for_a_certificate(tmp_path: Path) -> None:
    parties = Parties(tmp_path)
    server = TlsFolder(parties.issue(FarmRole.TRACKER, "tracker"))
    reader = parties.issue(FarmRole.READ, "prometheus")
    said = Said()
    context = ssl.create_default_context(cafile=str(reader / AUTHORITY))
    with metrics_at("0.0.0.0:0", m.TRACKER_METRICS, log=said, tls=server):
        address = said.address.replace("0.0.0.0", "127.0.0.1")
        with pytest.raises((urllib.error.URLError, ssl.SSLError, ConnectionError)):
            page(address, context)
        context.load_cert_chain(str(reader / IDENTITY))
        assert "tilefarm_waiting_clients" in page(address, context)


@pytest.mark.parametrize("said", [b"", b"GET /metrics HTTP/1.1\r\n"])
@pytest.mark.parametrize("encrypted", [True, False])
def test_silent_readers_hold_up_neither_the_page_nor_its_end(
    encrypted: bool, said: bytes, tmp_path: Path
) -> None:
    parties = Parties(tmp_path)
    reader = parties.issue(FarmRole.READ, "prometheus")
    context = ssl.create_default_context(cafile=str(reader / AUTHORITY)) if encrypted else None
    if context is not None:
        context.load_cert_chain(str(reader / IDENTITY))
    tls = TlsFolder(parties.issue(FarmRole.TRACKER, "tracker")) if encrypted else None
    listen, log = ("0.0.0.0:0" if encrypted else "127.0.0.1:0"), Said()
    with ExitStack() as owned:
        with metrics_at(listen, m.TRACKER_METRICS, log=log, tls=tls):
            address = log.address.replace("0.0.0.0", "127.0.0.1")
            host, _, port = address.rpartition(":")
            for _ in range(40):
                stranger = socket.create_connection((host, int(port)), timeout=60)
                owned.enter_context(stranger).sendall(said)
            assert "tilefarm_waiting_clients" in page(address, context)
        assert stranger.fileno() >= 0, "they stay until after the end"


def test_the_page_follows_its_certificates(tmp_path: Path) -> None:
    parties = Parties(tmp_path)
    server = parties.issue(FarmRole.TRACKER, "tracker")
    reader = parties.issue(FarmRole.READ, "prometheus")
    log = Said()
    context = ssl.create_default_context(cafile=str(reader / AUTHORITY))
    context.load_cert_chain(str(reader / IDENTITY))
    with metrics_at("0.0.0.0:0", m.TRACKER_METRICS, log=log, tls=TlsFolder(server)):
        address = log.address.replace("0.0.0.0", "127.0.0.1")
        assert page(address, context)
        parties.issue(FarmRole.TRACKER, "tracker", age_days=2.0)
        with pytest.raises((urllib.error.URLError, ssl.SSLError), match="expired"):
            page(address, context)
        (server / IDENTITY).write_bytes(b"")
        parties.issue(FarmRole.TRACKER, "tracker", out=server)
        assert page(address, context)


def test_a_port_in_use_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused = metrics_at(address, m.TRACKER_METRICS, log=Said())
        with pytest.raises(SettingsError, match="the port is in use") as told, refused:
            pass
    assert "ss -ltnp" in told.value.hint


def test_without_the_package_the_option_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    refused = metrics_at("127.0.0.1:0", m.TRACKER_METRICS, log=Said())
    with pytest.raises(SettingsError, match="needs the package prometheus_client") as told, refused:
        pass
    assert f"{sys.executable} -m pip install prometheus-client" in told.value.hint


@pytest.mark.parametrize(
    ("address", "reason"),
    [("unix:/tmp/m", "over HTTP"), ("9464", "not host:port"), ("h:99999", "no port 99999")],
)
def test_an_address_that_is_none_is_refused(address: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        Operations(metrics=address)


def test_options_become_one_record() -> None:
    parser = argparse.ArgumentParser()
    add_operation_options(parser)
    assert operations(parser.parse_args([])) == Operations()
    words = ["--log-format", "json", "--log-level", "debug", "--metrics", "127.0.0.1:0"]
    given = operations(parser.parse_args(words))
    assert given == Operations(
        log_format=LogFormat.JSON, log_level=Level.DEBUG, metrics="127.0.0.1:0"
    )
    again = operations(parser.parse_args(list(given.style.words)))
    assert again.style == given.style
