"""What is counted: every metric of the farm as a row, and who takes the numbers.

Labels are few and from short lists: devices, methods, statuses; never candidates or runs, of which
there are as many as anybody likes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

_LATENCY: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_WORKING: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
_WAITING: Final = (0.01, 0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0)


class Kind(Enum):
    """Counters only grow, gauges are as things are, histograms count values by size."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; `buckets` are a histogram's upper bounds."""

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


def _counter(name: str, meaning: str, *labels: str) -> Metric:
    return Metric(f"tilefarm_{name}_total", Kind.COUNTER, meaning, labels)


def _gauge(name: str, meaning: str, *labels: str) -> Metric:
    return Metric(f"tilefarm_{name}", Kind.GAUGE, meaning, labels)


def _histogram(name: str, meaning: str, buckets: tuple[float, ...], *labels: str) -> Metric:
    return Metric(f"tilefarm_{name}", Kind.HISTOGRAM, meaning, labels, buckets)


CALLS: Final = _counter("calls", "calls that ended, by gRPC's status code", "method", "status")
CALL_SECONDS: Final = _histogram("call_seconds", "how long calls took", _LATENCY, "method")

DEVICES: Final = _gauge("devices", "devices: free, leased, resting, drained, quarantined", "state")
DEVICE_RUNS: Final = _counter("device_runs", "runs that ended, as devices tell", "device")
DEVICE_BUSY: Final = _counter(
    "device_busy_seconds", "how long something ran on devices, as they tell", "device"
)
WAITING: Final = _gauge("waiting_clients", "clients that wait for a device")
LEASE_WAIT_SECONDS: Final = _histogram(
    "lease_wait_seconds", "how long clients waited for the devices that they got", _WAITING
)
LEASES: Final = _counter(
    "leases", "leases: granted, and how they ended: released, lost (the device), expired", "event"
)
REGISTRATIONS: Final = _counter("registrations", "devices that registered, anew or again")
DEVICES_EXPIRED: Final = _counter("devices_expired", "devices that fell silent")

RUNS: Final = _counter("runs", "runs, by how they ended", "device", "status")
RUN_SECONDS: Final = _histogram(
    "run_seconds", "how long runs took on the device, loading included", _WORKING, "device"
)
RUN_QUEUE_SECONDS: Final = _histogram(
    "run_queue_seconds", "how long runs waited for their turn", _LATENCY, "device"
)
UPLOADED: Final = _counter("uploaded_bytes", "bytes of blobs that arrived", "device")
REFUSED: Final = _counter(
    "refused_runs", "runs that were refused: the same had crashed the device twice", "device"
)
BLOBS: Final = _counter(
    "blobs", "blobs that runs needed: found on the device, or sent to it", "device", "event"
)
HUNG: Final = _counter("hangs", "runs that did not come back", "device")

TRIALS: Final = _counter("trials", "trials of this run, by how they ended", "status")
BEST_CYCLES: Final = _gauge("best_cycles", "fewest cycles so far", "workload")
BEST_SECONDS: Final = _gauge(
    "best_seconds", "fewest seconds so far, on devices that count no cycles", "workload"
)
COMPILE_SECONDS: Final = _histogram("compile_seconds", "how long candidates compiled", _WORKING)
DRIVER_RUN_SECONDS: Final = _histogram(
    "measure_seconds", "how long the driver waited for a candidate's run", _WORKING, "device"
)
TRANSFER_SECONDS: Final = _histogram(
    "transfer_seconds", "how long blobs took to a device", _LATENCY, "device"
)
HELD_DEVICES: Final = _gauge("held_devices", "devices that this run holds")
DEVICES_LOST: Final = _counter("devices_lost", "devices that this run lost", "device")

TRACKER_METRICS: Final = (
    CALLS,
    CALL_SECONDS,
    DEVICES,
    DEVICE_RUNS,
    DEVICE_BUSY,
    WAITING,
    LEASE_WAIT_SECONDS,
    LEASES,
    REGISTRATIONS,
    DEVICES_EXPIRED,
)
DEVICE_METRICS: Final = (
    CALLS,
    CALL_SECONDS,
    RUNS,
    RUN_SECONDS,
    RUN_QUEUE_SECONDS,
    UPLOADED,
    BLOBS,
    REFUSED,
    HUNG,
)
RUN_METRICS: Final = (
    TRIALS,
    BEST_CYCLES,
    BEST_SECONDS,
    COMPILE_SECONDS,
    DRIVER_RUN_SECONDS,
    TRANSFER_SECONDS,
    HELD_DEVICES,
    DEVICES_LOST,
)


class Metrics(Protocol):
    """Takes numbers, from any thread; `labels` are those that the metric's row names."""

    def add(self, metric: Metric, amount: float = 1.0, /, **labels: str) -> None:
        """Count."""
        ...

    def set(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Say how a gauge stands."""
        ...

    def observe(self, metric: Metric, value: float, /, **labels: str) -> None:
        """Put a value into a histogram."""
        ...


class NoMetrics:
    """Takes numbers that nobody reads."""

    def add(self, metric: Metric, amount: float = 1.0, /, **labels: str) -> None: ...

    def set(self, metric: Metric, value: float, /, **labels: str) -> None: ...

    def observe(self, metric: Metric, value: float, /, **labels: str) -> None: ...


def call_meter(metrics: Metrics) -> Callable[[str, str, float], None]:
    """A meter of a server's calls (`tilefarm.rpc.serving.Meter`)."""

    def meter(method: str, code: str, seconds: float) -> None:
        metrics.add(CALLS, method=method, status=code)
        metrics.observe(CALL_SECONDS, seconds, method=method)

    return meter
