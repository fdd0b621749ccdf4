"""Row 12: what is sent twice is done once, and what is told twice is counted once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from kit.counting_ids import CountingIds
from kit.farm.real_farm import RealFarm
from kit.kernels.c_kernels import blobs, job
from tilefarm.digest import Digest
from tilefarm.errors import ProtocolError
from tilefarm.measurement import Measurement, Status, Trial

from tuner.trial_store import TrialStore


def test_a_run_that_is_asked_for_many_times_runs_once(real_farm: RealFarm) -> None:
    tracker = real_farm.tracker()
    device = real_farm.device(tracker.address)
    lease = real_farm.lease(real_farm.ask(tracker.address))
    clients = [real_farm.use(lease) for _ in range(4)]
    clients[0].ensure(blobs())
    with ThreadPoolExecutor(len(clients)) as together:
        asked = [
            together.submit(client.run, job("increment"), request_id="one") for client in clients
        ]
        answers = [each.result(30) for each in asked]
    answers.append(clients[0].run(job("increment"), request_id="one"))
    assert isinstance(answers[0], Measurement)
    assert all(answer == answers[0] for answer in answers)
    assert device.said("event=ran") == 1
    with pytest.raises(ProtocolError, match="request one was another job before"):
        clients[0].run(job("crash"), request_id="one")
    assert device.said("event=ran") == 1


def test_a_lease_that_is_asked_for_twice_is_one(real_farm: RealFarm) -> None:
    tracker = real_farm.tracker()
    real_farm.device(tracker.address)
    real_farm.device(tracker.address, name="sim1")
    first, second = (real_farm.ask(tracker.address, ids=CountingIds()) for _ in range(2))
    assert real_farm.lease(first) == real_farm.lease(second)


def test_a_trial_that_is_told_twice_is_kept_once_and_as_it_was_told_first(tmp_path: Path) -> None:
    trial = Trial(
        workload=Digest.of(b"workload"),
        trace=Digest.of(b"trace"),
        point=(("tile", 1),),
        status=Status.OK,
        cycles=100,
    )
    with TrialStore(tmp_path / "records.sqlite") as store:
        for run in ("first", "second"):
            store.begin_run(run, {}, begun=0.0)
        assert store.insert(trial, run="first")
        assert not store.insert(trial, run="first")
        assert not store.insert(replace(trial, cycles=50), run="second")
        assert store.trials() == [trial]
