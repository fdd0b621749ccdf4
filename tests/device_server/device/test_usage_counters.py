"""What a device counts of its work."""

from __future__ import annotations

from kit.manual_clock import ManualClock
from tilefarm.digest import Digest
from tilefarm.rpc.tracker_calls import Usage

from device_server.device.upload_statistics import UploadStatistics
from device_server.device.usage_counters import UsageCounters


def test_what_runs_just_now_counts_up_to_now() -> None:
    clock = ManualClock()
    clock.advance(100.0)
    counters = UsageCounters(clock)
    clock.advance(1.0)
    with counters.busy():
        clock.advance(2.0)
        assert counters.usage == Usage(runs=0, busy_seconds=2.0, up_seconds=3.0)
        clock.advance(1.0)
    counters.ran()
    clock.advance(6.0)
    assert counters.usage == Usage(runs=1, busy_seconds=3.0, up_seconds=10.0)


def test_a_blob_is_sent_once_and_found_from_then_on() -> None:
    arrivals = UploadStatistics()
    code, weights, other = (Digest.of(name) for name in (b"code", b"weights", b"other"))
    arrivals.note([code, weights, other])
    assert arrivals.used([code, weights, code]) == (0, 2)
    arrivals.note([other])
    assert arrivals.used([code, weights, other]) == (2, 1)


def test_blobs_that_no_run_uses_are_forgotten_some_time() -> None:
    arrivals = UploadStatistics()
    blobs = [Digest.of(str(n).encode()) for n in range(5000)]
    arrivals.note(blobs)
    assert arrivals.used(blobs) == (5000 - 4096, 4096)
