"""Counts what a server's log tells: an event is one line in the log and one row here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from tilefarm.watch import metrics as m
from tilefarm.watch.log import Level, Log
from tilefarm.watch.metrics import Metrics

Rule: TypeAlias = Callable[[Metrics, Mapping[str, Any]], None]


def counted(log: Log, metrics: Metrics, rules: Mapping[str, Rule]) -> Log:
    """A log that counts as well, also what its level leaves out."""

    def both(event: str, *, level: Level = Level.INFO, **fields: object) -> None:
        log(event, level=level, **fields)
        if event in rules:
            rules[event](metrics, fields)

    return both


def _leased(metrics: Metrics, fields: Mapping[str, Any]) -> None:
    metrics.add(m.LEASES, event="granted")
    metrics.observe(m.LEASE_WAIT_SECONDS, fields["waited_seconds"])


def _released(metrics: Metrics, fields: Mapping[str, Any]) -> None:
    metrics.add(m.LEASES, event="lost" if fields["device_lost"] else "released")


def _expired(metrics: Metrics, fields: Mapping[str, Any]) -> None:
    if "lease" in fields:
        metrics.add(m.LEASES, event="expired")
    else:
        metrics.add(m.DEVICES_EXPIRED)


TRACKER_RULES: Final[Mapping[str, Rule]] = {
    "registered": lambda metrics, _: metrics.add(m.REGISTRATIONS),
    "leased": _leased,
    "released": _released,
    "expired": _expired,
}


def _ran(metrics: Metrics, fields: Mapping[str, Any]) -> None:
    device = fields["device"]
    metrics.add(m.RUNS, device=device, status=fields["status"])
    metrics.observe(m.RUN_SECONDS, fields["seconds"], device=device)
    metrics.observe(m.RUN_QUEUE_SECONDS, fields["queue_seconds"], device=device)


def _needed(metrics: Metrics, fields: Mapping[str, Any]) -> None:
    for event in ("found", "sent"):
        metrics.add(m.BLOBS, fields[event], device=fields["device"], event=event)


DEVICE_RULES: Final[Mapping[str, Rule]] = {
    "ran": _ran,
    "needed": _needed,
    "run_refused": lambda metrics, fields: metrics.add(m.REFUSED, device=fields["device"]),
    "hung": lambda metrics, fields: metrics.add(m.HUNG, device=fields["device"]),
    "stored": lambda metrics, fields: metrics.add(
        m.UPLOADED, fields["nbytes"], device=fields["device"]
    ),
}
