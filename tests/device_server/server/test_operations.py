"""How servers are watched: health for probes, reflection for tools, numbers for Prometheus."""

from __future__ import annotations

import importlib.util
import urllib.request
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from kit.farm.in_process import CREDENTIALS, TOKEN, Farm, Server, eventually
from kit.farm.parties import Parties
from kit.objects.elves import Elf
from tilefarm.digest import Digest
from tilefarm.errors import AccessError, NoDeviceError, UnreachableError
from tilefarm.measurement import RunJob
from tilefarm.rpc import health, methods
from tilefarm.rpc.caller import Caller
from tilefarm.rpc.health import Health, check_method
from tilefarm.trust.access import FarmRole
from tilefarm.trust.tls import Credentials
from tilefarm.watch.operations import Operations

from device_server.device.client import DeviceClient
from device_server.device.health import health_of
from device_server.device.health_state import HealthState
from device_server.tracker.client import TrackerClient

CODE = Elf().build()
JOB = RunJob(artifact=Digest.of(CODE), entry="echo", buffers=())
COUNTED = Operations(metrics="127.0.0.1:0")
NOBODY = Credentials(token="")


def asked(address: str, service: str, credentials: Credentials = NOBODY) -> Health:
    caller = Caller(address, credentials, peer="server", lost=UnreachableError)
    try:
        return caller.unary(check_method(), service, timeout_seconds=60)
    finally:
        caller.close()


def told_by_the_stub(address: str, service: str) -> int:
    """What the package's own client hears."""
    with grpc.insecure_channel(address) as channel:
        request = health_pb2.HealthCheckRequest(service=service)
        answer = health_pb2_grpc.HealthStub(channel).Check(request, timeout=60)
    return int(answer.status)


def page(farm: Farm, number: int) -> str:
    """What Prometheus reads from the server that was started as that one."""
    places = [str(fields["address"]) for event, fields in farm.events if event == "metrics"]
    with urllib.request.urlopen(f"http://{places[number]}/metrics", timeout=60) as answer:
        return str(answer.read().decode())


def sample(text: str, name: str) -> float:
    """The number of one row of a page."""
    (row,) = (line for line in text.splitlines() if line.startswith(f"tilefarm_{name} "))
    return float(row.rpartition(" ")[2])


@pytest.fixture
def tracker(farm: Farm) -> Server:
    """A counted tracker with the device sim0, counted as well."""
    tracker = farm.tracker(operations=COUNTED)
    farm.device("sim0", tracker=tracker, operations=COUNTED)
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        eventually(lambda: bool(client.devices()))
    return tracker


def test_health_is_the_standards_and_needs_no_token_on_this_machine(
    farm: Farm, tracker: Server
) -> None:
    for service in ("", methods.TRACKER, "device/sim0"):
        assert told_by_the_stub(tracker.address, service) == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(NoDeviceError, match="'device/sim9' is no service here"):
        asked(tracker.address, "device/sim9")
    with pytest.raises(grpc.RpcError) as refused:
        told_by_the_stub(tracker.address, "nosuch")
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("content", [b"\xff", b"\x0a\x05ab", b"\x0a\x01\xff"])
def test_nonsense_is_no_question(tracker: Server, content: bytes) -> None:
    with grpc.insecure_channel(tracker.address) as channel:
        ask = channel.unary_unary(check_method().path, bytes, bytes)
        with pytest.raises(grpc.RpcError) as refused:
            ask(content, timeout=60)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_drained_device_does_not_serve(tracker: Server) -> None:
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        client.drain("sim0", "repair")
        assert asked(tracker.address, "device/sim0") is Health.NOT_SERVING
        client.readmit("sim0")
    assert asked(tracker.address, "device/sim0") is Health.SERVING


def test_who_watches_hears_of_changes(tracker: Server) -> None:
    caller = Caller(tracker.address, NOBODY, peer="tracker", lost=UnreachableError)
    heard = caller.download(health.watch_method(), "device/sim0", timeout_seconds=60)
    assert next(heard) is Health.SERVING
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        client.drain("sim0", "repair")
    assert next(heard) is Health.NOT_SERVING
    caller.close()


def test_a_device_in_trouble_does_not_serve(farm: Farm) -> None:
    assert told_by_the_stub(farm.device("sim0").address, methods.DEVICE) == Health.SERVING
    condition = HealthState()
    for service in ("", methods.DEVICE):
        assert health_of(service, condition) is Health.SERVING
    assert health_of(methods.TRACKER, condition) is Health.SERVICE_UNKNOWN
    condition.hung = "a run did not come back"
    assert health_of("", condition) is Health.NOT_SERVING


def test_off_this_machine_health_is_for_who_belongs_to_the_farm(tmp_path: Path) -> None:
    parties = Parties(tmp_path / "pki")
    with Farm(tmp_path) as farm:
        farm.security = parties.security(parties.issue(FarmRole.TRACKER, "tracker"))
        tracker = farm.tracker()
        shown = parties.credentials(parties.issue(FarmRole.READ, "probe"))
        assert asked(tracker.address, "", shown) is Health.SERVING
        with pytest.raises(AccessError):
            asked(tracker.address, "", Credentials(token="wrong", tls=shown.tls))


def test_without_the_package_there_is_no_health(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    tracker = farm.tracker()
    with pytest.raises(AccessError):
        asked(tracker.address, "")


def test_tools_on_this_machine_see_the_services(tracker: Server) -> None:
    with grpc.insecure_channel(tracker.address) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        (answer,) = stub.ServerReflectionInfo(iter([request]), timeout=60)
    names = {service.name for service in answer.list_services_response.service}
    assert names >= {methods.TRACKER, health.SERVICE}


def test_what_servers_do_is_counted(farm: Farm, tracker: Server) -> None:
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
        assert lease is not None
        with DeviceClient(lease, CREDENTIALS) as device:
            device.ensure({Digest.of(CODE): CODE})
            device.run(JOB, request_id="r1")
            device.run(JOB, request_id="r2")
            device.run(JOB, request_id="r2")
        client.release(lease)
    eventually(lambda: 'tilefarm_devices{state="free"} 1.0' in page(farm, 0))
    eventually(lambda: 'tilefarm_device_runs_total{device="sim0"} 2.0' in page(farm, 0))
    assert 0.0 < sample(page(farm, 0), 'device_busy_seconds_total{device="sim0"}') < 30.0
    for row in (
        'leases_total{event="granted"} 1.0',
        'leases_total{event="released"} 1.0',
        "lease_wait_seconds_count 1.0",
        'calls_total{method="Acquire",status="OK"} 1.0',
        "registrations_total 1.0",
        "waiting_clients 0.0",
    ):
        assert f"\ntilefarm_{row}" in page(farm, 0), row
    for row in (
        'runs_total{device="sim0",status="ok"} 2.0',
        'run_seconds_count{device="sim0"} 2.0',
        'blobs_total{device="sim0",event="sent"} 1.0',
        'blobs_total{device="sim0",event="found"} 1.0',
        f'uploaded_bytes_total{{device="sim0"}} {float(len(CODE))}',
        'calls_total{method="Run",status="OK"} 3.0',
    ):
        assert f"\ntilefarm_{row}" in page(farm, 1), row


def test_no_log_line_holds_a_secret(farm: Farm, tracker: Server) -> None:
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
        assert lease is not None
        with DeviceClient(lease, CREDENTIALS) as device:
            device.ensure({Digest.of(CODE): CODE})
            device.run(JOB, request_id="r1")
        client.release(lease, device_lost=True, why="pulled")
    stranger = Credentials(token="a-guess-of-a-stranger")
    with TrackerClient(tracker.address, stranger) as client, pytest.raises(AccessError):
        client.devices()
    said = repr(farm.events)
    assert {"leased", "ran", "stored", "released", "refused"} <= {event for event, _ in farm.events}
    secret = (farm.folder / "sim0" / "secret").read_bytes()
    for hidden in (TOKEN, stranger.token, secret.hex(), repr(secret), lease.ticket.hex()):
        assert hidden not in said
    assert repr(lease.ticket) not in said
