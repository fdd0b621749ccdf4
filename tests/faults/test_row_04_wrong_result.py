"""Row 4: a device that turns wrong is found out within 50 kernels; what it said is taken back."""

from __future__ import annotations

from pathlib import Path

from kit.doubtful_search import CANDIDATES, KERNEL, RIGHT_CYCLES, CountingRunner, searched
from kit.farm import CREDENTIALS, Farm, eventually
from tilefarm.measurement import Status

from device_server.tracker.client import TrackerClient


def test_nothing_that_a_flaky_device_gave_is_kept(tmp_path: Path) -> None:
    with Farm(tmp_path / "farm") as farm:
        tracker = farm.tracker()
        flaky = CountingRunner(kernel=KERNEL, flips_after=12)
        farm.device("flaky", tracker=tracker, runner=flaky)
        farm.device("sound", tracker=tracker, runner=CountingRunner(kernel=KERNEL))
        with searched(farm, tracker, tmp_path, devices=2) as search:
            kept, suspects = search.store.trials(), search.store.suspects()
            assert search.result.why == "exhausted"
        with TrackerClient(tracker.address, CREDENTIALS) as client:
            eventually(lambda: any("wrong_result" in s.quarantine for s in client.states()))
    assert {(t.status, t.cycles) for t in kept} == {(Status.OK, RIGHT_CYCLES)}
    assert len(kept) == search.result.trials == CANDIDATES
    assert {t.device for t in kept} == {"fake"}
    assert any(t.cycles == RIGHT_CYCLES - 1 for t, _ in suspects)
    assert len(suspects) < 50
    assert all("is not right any more" in why for _, why in suspects)
