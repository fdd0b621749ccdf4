"""What a stranger, an old client or a bad line may send: each gets its status code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.farm.in_process import CREDENTIALS, TOKEN, Farm, Server, eventually
from kit.objects.elves import Elf
from tilefarm.digest import Digest
from tilefarm.lease import Lease
from tilefarm.measurement import RunJob
from tilefarm.rpc import device_calls, methods, tracker_calls, wire
from tilefarm.rpc.caller import MOST_MESSAGE_NBYTES, authorization

from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient

CODE = Elf().build()
DIGEST = Digest.of(CODE)
DEVICE = {
    name: method
    for name, method in vars(methods).items()
    if isinstance(method, methods.Method) and method.service == methods.DEVICE
}
TRACKER = {
    name: method
    for name, method in vars(methods).items()
    if isinstance(method, methods.Method) and method.service == methods.TRACKER
}


@pytest.fixture
def tracker(farm: Farm) -> Server:
    return farm.tracker()


@pytest.fixture
def device(farm: Farm, tracker: Server) -> Server:
    return farm.device(tracker=tracker)


@pytest.fixture
def lease(farm: Farm, tracker: Server, device: Server) -> Lease:
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="test")
    assert lease is not None
    return lease


def code_of(
    address: str,
    path: str,
    *requests: bytes,
    timeout: float | None = 60.0,
    metadata: tuple[tuple[str, str], ...] = authorization(TOKEN),
) -> tuple[grpc.StatusCode, str]:
    """How a call of any shape ends, and the reason given."""
    with grpc.insecure_channel(address) as channel:
        call = channel.stream_stream(path, bytes, bytes)
        replies = call(iter(requests), timeout=timeout, metadata=metadata)
        try:
            for _ in replies:
                pass
        except grpc.RpcError as error:
            failure = cast(grpc.Call, error)
            return failure.code(), str(failure.details())
        return grpc.StatusCode.OK, ""


def chunk(
    claim: device_calls.Claim | None, data: bytes = CODE, *, offset: int = 0, finish: bool = True
) -> bytes:
    return wire.CHUNK.encode(
        device_calls.Chunk(digest=DIGEST, offset=offset, data=data, finish=finish, claim=claim)
    )


@pytest.mark.parametrize("name", [*DEVICE, *TRACKER])
def test_every_call_wants_the_token_and_a_deadline(
    name: str, tracker: Server, device: Server
) -> None:
    method = {**DEVICE, **TRACKER}[name]
    address = (device if name in DEVICE else tracker).address
    for metadata in ((), (("authorization", TOKEN),), authorization("x" * 40)):
        code, _ = code_of(address, method.path, b"", metadata=metadata)
        assert code is grpc.StatusCode.UNAUTHENTICATED
    code, why = code_of(address, method.path, b"", timeout=None)
    assert (code, why) == (grpc.StatusCode.INVALID_ARGUMENT, "a call without a deadline")


def test_a_method_that_is_not_there_is_refused(device: Server) -> None:
    code, _ = code_of(device.address, "/tilefarm.v1.DeviceService/Erase", b"")
    assert code is grpc.StatusCode.PERMISSION_DENIED
    code, _ = code_of(device.address, "/tilefarm.v1.DeviceService/Erase", b"", metadata=())
    assert code is grpc.StatusCode.UNAUTHENTICATED


@settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_noise_upsets_a_handler(
    farm: Farm, tracker: Server, device: Server, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from([*DEVICE, *TRACKER]))
    address = (device if name in DEVICE else tracker).address
    requests = data.draw(st.lists(st.binary(max_size=60), min_size=1, max_size=2))
    code_of(address, {**DEVICE, **TRACKER}[name].path, *requests, timeout=0.2)
    assert not [event for event, _ in farm.events if event == "fault"]
    assert code_of(device.address, methods.GET_CAPABILITIES.path, b"")[0] is grpc.StatusCode.OK


def test_a_request_that_is_no_record_is_an_invalid_argument(device: Server) -> None:
    code, why = code_of(device.address, methods.READ.path, b"\x0a\x03abc")
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "SHA-256" in why


def test_a_message_over_the_limit_is_refused(device: Server, lease: Lease) -> None:
    big = chunk(device_calls.Claim.of(lease), bytes(MOST_MESSAGE_NBYTES))
    code, _ = code_of(device.address, methods.WRITE.path, big)
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_truncated_upload_is_data_loss_and_leaves_no_blob(
    farm: Farm, device: Server, lease: Lease
) -> None:
    claim = device_calls.Claim.of(lease)
    other = wire.CHUNK.encode(
        device_calls.Chunk(digest=Digest.of(b"x"), offset=0, data=b"x", finish=True)
    )
    jump = chunk(None, CODE[:5], offset=9)
    for following in ([], [other], [jump]):
        first = chunk(claim, CODE[:5], finish=False)
        code, _ = code_of(device.address, methods.WRITE.path, first, *following)
        assert code is grpc.StatusCode.DATA_LOSS
    query = wire.QUERY_WRITE.encode(device_calls.QueryWrite(claim=claim, digest=DIGEST))
    assert code_of(device.address, methods.QUERY_WRITE.path, query)[0] is grpc.StatusCode.OK
    assert not list((farm.folder / "sim0" / "blobs").iterdir())


def test_blobs_before_a_broken_one_stay(device: Server, lease: Lease) -> None:
    good = chunk(device_calls.Claim.of(lease))
    broken = wire.CHUNK.encode(
        device_calls.Chunk(digest=Digest.of(b"x"), offset=0, data=b"y", finish=True)
    )
    assert code_of(device.address, methods.WRITE.path, good, broken)[0] is grpc.StatusCode.DATA_LOSS
    with DeviceClient(lease, CREDENTIALS) as client:
        assert client.read(DIGEST) == CODE


def test_an_upload_that_breaks_off_leaves_nothing(farm: Farm, device: Server, lease: Lease) -> None:
    def endless() -> Iterator[bytes]:
        yield chunk(device_calls.Claim.of(lease), CODE[:5], finish=False)
        raise OSError("the line is dead")

    with grpc.insecure_channel(device.address) as channel:
        call = channel.stream_unary(methods.WRITE.path, bytes, bytes)
        with pytest.raises(grpc.RpcError):
            call(endless(), timeout=60.0, metadata=authorization(TOKEN))
    assert code_of(device.address, methods.GET_CAPABILITIES.path, b"")[0] is grpc.StatusCode.OK
    assert not list((farm.folder / "sim0" / "blobs").iterdir())


def test_an_upload_needs_a_current_claim(device: Server, lease: Lease) -> None:
    code, _ = code_of(device.address, methods.WRITE.path, chunk(None))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    claim = device_calls.Claim.of(lease)
    assert code_of(device.address, methods.WRITE.path, chunk(claim))[0] is grpc.StatusCode.OK
    for stale in (
        device_calls.Claim(lease_id="other", fence=claim.fence, epoch=claim.epoch),
        device_calls.Claim(lease_id=claim.lease_id, fence=claim.fence - 1, epoch=claim.epoch),
        device_calls.Claim(lease_id=claim.lease_id, fence=claim.fence, epoch="earlier"),
    ):
        code, _ = code_of(device.address, methods.WRITE.path, chunk(stale))
        assert code is grpc.StatusCode.ABORTED
        load = wire.LOAD_MODULE.encode(device_calls.LoadModule(claim=stale, artifact=DIGEST))
        assert code_of(device.address, methods.LOAD_MODULE.path, load)[0] is grpc.StatusCode.ABORTED


def test_a_run_without_its_blobs_is_a_failed_precondition(device: Server, lease: Lease) -> None:
    job = RunJob(artifact=DIGEST, entry="echo", buffers=())
    run = wire.RUN.encode(
        device_calls.Run(claim=device_calls.Claim.of(lease), request_id="r", job=job)
    )
    code, _ = code_of(device.address, methods.RUN.path, run)
    assert code is grpc.StatusCode.FAILED_PRECONDITION


def test_a_client_that_stops_waiting_leaves_no_lease_behind(
    farm: Farm, tracker: Server, lease: Lease
) -> None:
    wish = wire.ACQUIRE.encode(
        tracker_calls.Acquire(request_id="gone", target=farm.target.digest, wait_seconds=60.0)
    )
    with (
        TrackerClient(tracker.address, CREDENTIALS) as client,
        grpc.insecure_channel(tracker.address) as channel,
    ):
        call = cast(Any, channel.unary_unary(methods.ACQUIRE.path, bytes, bytes))
        waiting = call.future(wish, timeout=60.0, metadata=authorization(TOKEN))
        eventually(lambda: len(client.overview().waiting) == 1)
        waiting.cancel()
        eventually(lambda: not client.overview().waiting)
        client.release(lease)
        assert client.acquire(farm.target.digest, wait_seconds=60.0, owner="next") is not None
