"""A farm, its devices and its line: names, claims, restarts, priorities, signatures."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from kit.farm.in_process import CREDENTIALS, FakeRunner, Farm, Server, eventually
from kit.objects.elves import Elf
from tilefarm.clock import SystemClock
from tilefarm.digest import Digest
from tilefarm.errors import ForbiddenError, LeaseError, SettingsError
from tilefarm.lease import Lease
from tilefarm.measurement import Measurement, RunJob
from tilefarm.rpc.security import Security
from tilefarm.trust.access import FarmRole
from tilefarm.trust.tls import Credentials
from tilefarm.trust.tokens import TokenEntry, TokenTable, table_text

from device_server.device import registration
from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient
from device_server.tracker.limits import TableLimits
from driver.atomic_write import write_atomically
from driver.farm.signing import key_pair, signer

CODE = Elf().build()
BLOBS = {Digest.of(CODE): CODE}
JOB = RunJob(artifact=Digest.of(CODE), entry="echo", buffers=())


def leased(farm: Farm, tracker: Server) -> Lease:
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
    assert lease is not None
    return lease


def test_of_two_devices_of_one_name_the_living_one_stays(farm: Farm) -> None:
    tracker = farm.tracker()
    first = farm.device(tracker=tracker)
    lease = leased(farm, tracker)
    second = farm.device(
        tracker=tracker, settings=lambda s: replace(s, folder=farm.folder / "other")
    )
    error = second.ended_with(60)
    assert isinstance(error, SettingsError)
    assert f"'sim0' is taken by a living device at {first.address}" in error.what
    assert "a name of its own" in error.hint
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        client.renew(lease)


def test_the_same_device_gets_its_name_back_at_once(farm: Farm) -> None:
    """Its secret proves that it is the same one, whatever became of its last server."""
    tracker = farm.tracker()
    farm.device(tracker=tracker)
    old = leased(farm, tracker)
    secret, other = farm.folder / "sim0" / "secret", farm.folder / "other"
    assert secret.stat().st_mode & 0o777 == 0o600
    other.mkdir()
    (other / "secret").write_bytes(secret.read_bytes())
    farm.device(tracker=tracker, settings=lambda s: replace(s, folder=other))
    new = leased(farm, tracker)
    assert new.device.epoch != old.device.epoch
    with TrackerClient(tracker.address, CREDENTIALS) as client, pytest.raises(LeaseError):
        client.renew(old)


def test_a_device_whose_token_is_void_for_a_while_comes_back(
    farm: Farm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "REFUSED_SECONDS", 0.1)
    rows = [
        TokenEntry(hash=Digest.of(role.value.encode()), user="sim0", role=role)
        for role in (FarmRole.DEVICE, FarmRole.READ)
    ]
    table = tmp_path / "tokens.json"
    write_atomically(table, table_text(tuple(rows)).encode())
    farm.security = Security(tokens=TokenTable(table, SystemClock()))
    farm.credentials = Credentials(token="device")
    tracker = farm.tracker(limits=TableLimits(device_ttl_seconds=1.0))
    farm.device(tracker=tracker)
    with TrackerClient(tracker.address, Credentials(token="read")) as client:
        eventually(lambda: bool(client.devices()))
        write_atomically(table, table_text(tuple(rows[1:])).encode())
        eventually(lambda: not client.devices())
        write_atomically(table, table_text(tuple(rows)).encode())
        eventually(lambda: bool(client.devices()))


def test_a_claim_that_the_tracker_did_not_give_locks_nobody_out(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device(tracker=tracker)
    lease = leased(farm, tracker)
    made_up = replace(lease, fence=lease.fence + 10**9)
    with (
        DeviceClient(made_up, CREDENTIALS) as thief,
        pytest.raises(LeaseError, match="not given by this device's tracker"),
    ):
        thief.ensure(BLOBS)
    with DeviceClient(lease, CREDENTIALS) as device:
        device.ensure(BLOBS)
        assert isinstance(device.run(JOB, request_id="r1"), Measurement)


def test_a_restarted_tracker_knows_devices_leases_and_who_is_out(farm: Farm) -> None:
    state = farm.folder / "tracker.sqlite"
    tracker = farm.tracker(state=state)
    farm.device("a", tracker=tracker)
    first = leased(farm, tracker)
    tracker.stop()
    again = farm.tracker(listen=tracker.address, state=state)
    assert state.stat().st_mode & 0o777 == 0o600
    with TrackerClient(again.address, CREDENTIALS) as client:
        (known,) = client.states()
        assert (known.device.name, known.owner) == ("a", "test")
        client.renew(first)
        client.drain("a", "for repair")
        client.release(first)
    again.stop()
    third = farm.tracker(listen=tracker.address, state=state)
    with TrackerClient(third.address, CREDENTIALS) as client:
        assert client.states()[0].draining == "for repair"
        assert client.acquire(farm.target.digest, wait_seconds=0.0, owner="x") is None
        client.readmit("a")
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="x")
    assert lease is not None
    assert lease.fence > first.fence


def test_a_state_that_cannot_be_used_is_told(farm: Farm) -> None:
    state = farm.folder / "tracker.sqlite"
    farm.tracker(state=state)
    with pytest.raises(SettingsError, match=r"cannot keep the tracker's state: .*locked") as told:
        farm.tracker(state=state)
    assert "stop the tracker that uses it" in told.value.hint
    noise = farm.folder / "noise"
    noise.write_bytes(b"no database" * 100)
    with pytest.raises(SettingsError, match="not a database"):
        farm.tracker(state=noise)
    with pytest.raises(SettingsError, match="No such file") as told:
        farm.tracker(state=farm.folder / "no" / "f")
    assert told.value.hint == "name a file in your folder"


def test_a_higher_priority_is_served_first_and_the_line_can_be_seen(farm: Farm) -> None:
    tracker = farm.tracker()
    farm.device(tracker=tracker)
    first = leased(farm, tracker)
    served: list[str] = []

    def wait(owner: str, priority: int) -> None:
        with TrackerClient(tracker.address, CREDENTIALS) as client:
            lease = client.acquire(
                farm.target.digest, wait_seconds=60.0, owner=owner, priority=priority
            )
            served.append(owner)
            assert lease is not None
            client.release(lease)

    with TrackerClient(tracker.address, CREDENTIALS) as client:

        def waits(count: int) -> bool:
            return len(client.overview().waiting) == count

        threads = []
        for count, (owner, priority) in enumerate((("low", 0), ("high", 5)), 1):
            threads.append(threading.Thread(target=wait, args=(owner, priority)))
            threads[-1].start()
            eventually(partial(waits, count))
        assert [waiting.owner for waiting in client.overview().waiting] == ["high", "low"]
        client.release(first)
    for thread in threads:
        thread.join(60)
    assert served == ["high", "low"]


SECRET = (b"k" * 32, b"k" * 32, b"x" * 32)
PAIR = (*key_pair(), key_pair()[0])


@pytest.mark.parametrize(("ours", "devices", "others"), [SECRET, PAIR], ids=["secret", "pair"])
def test_unsigned_artifacts_do_not_run_on_a_device_with_a_key(
    farm: Farm, ours: bytes, devices: bytes, others: bytes
) -> None:
    tracker = farm.tracker()
    runner = FakeRunner()
    farm.credentials = replace(CREDENTIALS, signing_key=devices)
    farm.device(tracker=tracker, runner=runner)
    lease = leased(farm, tracker)
    for key, reason in ((None, "is not signed"), (others, "signed with another key")):
        with DeviceClient(lease, CREDENTIALS, sign=signer(key)) as device:
            device.ensure(BLOBS)
            with pytest.raises(ForbiddenError, match=reason) as refused:
                device.run(JOB, request_id="r")
            assert "--signing-key" in refused.value.hint
            with pytest.raises(ForbiddenError, match=reason):
                device.load_module(Digest.of(CODE))
    assert not runner.seen
    with DeviceClient(lease, CREDENTIALS, sign=signer(ours)) as device:
        assert device.load_module(Digest.of(CODE)) == ""
        assert isinstance(device.run(JOB, request_id="r"), Measurement)


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "sim\n0"])
def test_a_device_has_a_plain_name(farm: Farm, name: str) -> None:
    with pytest.raises(SettingsError, match="not a name"):
        farm.device(name)


def test_what_no_message_can_say_is_refused_before_it_is_sent(farm: Farm) -> None:
    with TrackerClient(farm.tracker().address, CREDENTIALS) as client:
        with pytest.raises(SettingsError, match=r"Drain cannot say this: .*surrogates") as refused:
            client.drain("sim\udcff", "")
        with pytest.raises(SettingsError, match="Acquire cannot say this"):
            client.acquire(farm.target.digest, wait_seconds=0.0, owner="", priority=2**40)
    assert "UTF-8" in refused.value.hint
