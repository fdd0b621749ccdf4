"""Row 2: a kernel that crashes ends as one failed run; the second time it is quarantined."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.farm.in_process import Farm, eventually
from kit.farm.real_farm import RealFarm, Served
from kit.kernels.c_kernels import blobs, job
from tilefarm.digest import Digest
from tilefarm.measurement import Measurement, RunFailure, RunJob, Status

from device_server.device.client import DeviceClient
from device_server.device.known_kernel import ENTRY
from device_server.tenancy import OWN, Tenancy

from .fault_rows import Stopwatch
from .wrong_device_search import CANDIDATES, KERNEL, CountingRunner, searched


@pytest.mark.parametrize(
    ("entry", "number"), [("crash", signal.SIGSEGV), ("illegal", signal.SIGILL)]
)
def test_the_crash_is_the_kernels_own(
    real_farm: RealFarm, stopwatch: Stopwatch, entry: str, number: int
) -> None:
    tracker = real_farm.tracker()
    device = real_farm.device(tracker.address)
    client = real_farm.use(real_farm.lease(real_farm.ask(tracker.address)))
    client.ensure(blobs())
    assert isinstance(client.run(job("increment"), request_id="warm"), Measurement)
    with stopwatch.running():
        outcome = client.run(job(entry), request_id="crash")
    assert isinstance(outcome, RunFailure)
    assert (outcome.status, outcome.signal) == (Status.RUN_CRASH, number)
    assert isinstance(client.run(job("increment"), request_id="after"), Measurement)
    assert device.alive


def test_what_crashed_twice_is_not_run_again_before_it_is_forgiven(
    real_farm: RealFarm, stopwatch: Stopwatch
) -> None:
    tracker = real_farm.tracker()
    admin = real_farm.ask(tracker.address)

    def used(device: Served) -> DeviceClient:
        assert device.alive
        client = real_farm.use(real_farm.lease(admin))
        client.ensure(blobs())
        return client

    device = real_farm.device(tracker.address)
    client = used(device)
    for number in (1, 2):
        _assert_crash(client.run(job("crash"), request_id=f"r{number}"), quarantined=False)
    with stopwatch.running():
        _assert_crash(client.run(job("crash"), request_id="r3"), quarantined=True)
    assert isinstance(client.run(job("increment"), request_id="r4"), Measurement)
    assert device.said("event=ran") == 3, "two that crashed, and another entry that is well"
    kept = json.loads((real_farm.folder / "sim0" / "quarantined.json").read_text())
    assert [(row["crashes"], row["entry"]) for row in kept.values()] == [(2, "crash")]

    device.kill()
    device = real_farm.device(tracker.address, listen=device.address)
    client = used(device)
    _assert_crash(client.run(job("crash"), request_id="r5"), quarantined=True)
    assert device.said("event=quarantined") == 1
    assert device.said("event=run_refused") == 2
    assert device.said("event=ran") == 3

    admin.readmit("sim0")
    eventually(lambda: device.said("event=forgiven") == 1)
    _assert_crash(client.run(job("crash"), request_id="r6"), quarantined=False)


def _assert_crash(outcome: Measurement | RunFailure, *, quarantined: bool) -> None:
    assert isinstance(outcome, RunFailure)
    assert outcome.status is Status.RUN_CRASH
    assert ("quarantined" in outcome.why) == quarantined, outcome.why


class CrashingRunner(CountingRunner):
    """Every other artifact crashes."""

    def run(
        self, job: RunJob, blob: Callable[[Digest], Path], tenancy: Tenancy = OWN
    ) -> Measurement | RunFailure:
        outcome = CountingRunner.run(self, job, blob, tenancy)
        if job.entry == ENTRY or int(job.artifact.hex, 16) % 2:
            return outcome
        return RunFailure(artifact=job.artifact, status=Status.RUN_CRASH, why="SIGSEGV", signal=11)


def test_a_search_counts_what_is_refused_as_a_crash_and_goes_on(tmp_path: Path) -> None:
    """Three searches of the same candidates; the third one harms nobody any more."""
    runner = CrashingRunner(kernel=KERNEL)
    with Farm(tmp_path / "farm") as farm:
        tracker = farm.tracker()
        farm.device("sim0", tracker=tracker, runner=runner)
        outcomes = []
        for number in range(3):
            folder = tmp_path / f"search{number}"
            folder.mkdir()
            with searched(farm, tracker, folder, devices=1, run=folder.name) as search:
                trials = search.store.trials()
                outcomes.append({(t.workload, t.trace, t.status, t.cycles) for t in trials})
                assert search.result.why == "exhausted"
                assert len(trials) == CANDIDATES, "no candidate is proposed again"
    assert outcomes[0] == outcomes[1] == outcomes[2]
    failed = [trial for trial in trials if trial.status is Status.RUN_CRASH]
    assert failed
    assert all("quarantined" in trial.why for trial in failed)
    runs = Counter(job.artifact for job in runner.seen)
    assert {runs[artifact] for t in failed if (artifact := t.artifact)} == {2}
