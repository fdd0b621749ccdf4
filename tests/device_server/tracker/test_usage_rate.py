"""What a device says that it did: lately, and what of it is believed."""

from __future__ import annotations

import math

import pytest
from tilefarm.digest import Digest
from tilefarm.lease import DeviceInfo
from tilefarm.rpc.tracker_calls import Devices, DeviceState, Usage
from tilefarm.watch.metrics import DEVICE_BUSY, DEVICE_RUNS, Metric, NoMetrics

from device_server.tracker.gauges import UsageCounter
from device_server.tracker.usage_rate import UsageRate


def info(name: str, epoch: str) -> DeviceInfo:
    return DeviceInfo(
        name=name, address="a:1", target=Digest.of(b""), runtime="r", sandbox="s", epoch=epoch
    )


def usage(runs: int, busy_seconds: float, up_seconds: float) -> Usage:
    return Usage(runs=runs, busy_seconds=busy_seconds, up_seconds=up_seconds)


def test_lately_is_the_last_ten_seconds() -> None:
    pace = UsageRate()
    assert pace.usage is None
    assert pace.lately is None
    for second in range(0, 62, 2):
        pace.hear(usage(5 * second, second / 2, float(second)))
    assert pace.usage == usage(300, 30.0, 60.0)
    assert pace.lately == usage(50, 5.0, 10.0)


def test_a_device_that_was_silent_for_long_has_a_pace_since_then() -> None:
    pace = UsageRate()
    pace.hear(usage(0, 0.0, 0.0))
    pace.hear(usage(60, 30.0, 60.0))
    assert pace.lately == usage(60, 30.0, 60.0)


@pytest.mark.parametrize(
    "impossible", [usage(1, math.nan, 1.0), usage(1, 1.0, math.inf), usage(1, -1.0, 1.0)], ids=str
)
def test_what_cannot_be_is_not_believed(impossible: Usage) -> None:
    pace = UsageRate()
    pace.hear(usage(1, 1.0, 2.0))
    pace.hear(impossible)
    assert pace.usage == usage(1, 1.0, 2.0)


def test_what_goes_back_begins_anew() -> None:
    pace = UsageRate()
    pace.hear(usage(9, 5.0, 50.0))
    pace.hear(usage(1, 0.5, 1.0))
    assert pace.lately == usage(0, 0.0, 0.0)


class Counted(NoMetrics):
    """Adds up."""

    def __init__(self) -> None:
        self.sums: dict[Metric, float] = {}

    def add(self, metric: Metric, amount: float = 1.0, /, **labels: str) -> None:
        assert labels == {"device": "sim0"}
        assert amount >= 0, "a counter only grows"
        self.sums[metric] = self.sums.get(metric, 0.0) + amount


def test_work_is_counted_from_when_it_is_first_heard_of_and_over_new_lives() -> None:
    metrics = Counted()
    work = UsageCounter(metrics)

    def told(epoch: str, runs: int, busy_seconds: float) -> None:
        state = DeviceState(device=info("sim0", epoch), usage=usage(runs, busy_seconds, 99.0))
        work.count(Devices(states=(state, DeviceState(device=info("old", "e"), usage=None))))

    told("e1", 1000, 50.0)
    told("e1", 1003, 52.0)
    told("e1", 900, 10.0)
    told("e2", 1, 0.5)
    told("e2", 5, 1.5)
    assert metrics.sums == {DEVICE_RUNS: 7, DEVICE_BUSY: 3.0}
