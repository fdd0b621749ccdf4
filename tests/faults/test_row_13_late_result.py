"""Row 13: who has lost a device meanwhile can do nothing on it, and disturbs nobody who has it.

What is refused is counted, by method.
"""

from __future__ import annotations

import urllib.request

import pytest
from kit.farm.in_process import eventually
from kit.farm.real_farm import RealFarm
from kit.kernels.c_kernels import blobs, job
from kit.reports.observed import log_lines
from tilefarm.digest import Digest
from tilefarm.errors import LeaseError
from tilefarm.measurement import Measurement


def test_an_old_lease_is_refused_whatever_it_asks_for(real_farm: RealFarm) -> None:
    tracker = real_farm.tracker()
    device = real_farm.device(tracker.address, "--metrics", "127.0.0.1:0")
    client = real_farm.ask(tracker.address)
    old = real_farm.lease(client)
    late = real_farm.use(old)
    late.ensure(blobs())
    client.release(old)  # what the tracker does when a driver is silent for too long
    new = real_farm.lease(client)
    assert new.fence > old.fence
    assert isinstance(real_farm.use(new).run(job("increment"), request_id="new"), Measurement)
    with pytest.raises(LeaseError, match="is out of date"):
        late.run(job("increment"), request_id="late")
    with pytest.raises(LeaseError, match="is out of date"):
        late.ensure({Digest.of(b"more"): b"more"})
    assert device.said("event=ran") == 1
    with pytest.raises(LeaseError, match="unknown, expired"):
        client.renew(old)
    client.renew(new)
    # They are counted when they are answered, which may be a moment after we hear of it.
    counts = {
        f'tilefarm_calls_total{{method="{name}",status="ABORTED"}} 1.0' for name in ("Run", "Write")
    }
    eventually(lambda: counts <= set(metrics_of(real_farm, "sim0")))


def metrics_of(farm: RealFarm, name: str) -> list[str]:
    lines = log_lines(farm.folder / f"{name}.log")
    (address,) = (line["address"] for line in lines if line["event"] == "metrics")
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        return str(answer.read().decode()).splitlines()
