"""Calls of headers alone, calls that never end, idle connections: none keeps others out."""

from __future__ import annotations

import threading
from contextlib import ExitStack, suppress
from typing import Any, Final, cast

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2_grpc
from kit.farm.crowd import connect, silent_calls
from kit.farm.in_process import CREDENTIALS, TOKEN, Farm, Server, eventually
from tilefarm.errors import BusyError, UnreachableError
from tilefarm.rpc import methods, serving
from tilefarm.rpc.call_slots import CallSlots
from tilefarm.rpc.caller import authorization
from tilefarm.rpc.methods import Method
from tilefarm.rpc.version import announcement

from device_server.tracker import server
from device_server.tracker.client import TrackerClient

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
"""What a connection of HTTP/2 begins with, and empty settings."""

METHODS: Final = [method for method in vars(methods).values() if isinstance(method, Method)]


@pytest.fixture
def tracker(farm: Farm) -> Server:
    return farm.tracker()


def served(address: str) -> None:
    with TrackerClient(address, CREDENTIALS) as client:
        assert client.devices() == []


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_stranger_is_refused_before_a_message(
    method: Method[Any, Any], farm: Farm, tracker: Server
) -> None:
    asked = tracker if method.service == methods.TRACKER else farm.device(tracker=tracker)
    with silent_calls(asked.address, method.path, (), calls=1) as (call,):
        assert call.code() is grpc.StatusCode.UNAUTHENTICATED


def test_five_hundred_calls_of_strangers_keep_nobody_out(tracker: Server) -> None:
    path = methods.LIST_DEVICES.path
    with silent_calls(tracker.address, path, (), calls=500) as calls:
        served(tracker.address)
        assert {call.code() for call in calls} == {grpc.StatusCode.UNAUTHENTICATED}


def test_a_call_whose_message_does_not_come_is_ended(
    farm: Farm, tracker: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "MESSAGE_SECONDS", 0.3)
    device = farm.device(tracker=tracker)
    known = (*authorization(TOKEN), *announcement())
    for asked, method in ((tracker, methods.ACQUIRE), (device, methods.WRITE)):
        with silent_calls(asked.address, method.path, known, calls=1) as (call,):
            assert call.code() is grpc.StatusCode.UNAVAILABLE
            assert "no message came within 0.3 s" in str(call.details())


def test_a_call_that_ends_without_a_message_is_told_so(tracker: Server) -> None:
    with grpc.insecure_channel(tracker.address) as channel:
        ask = channel.stream_unary(methods.LIST_DEVICES.path, bytes, bytes)
        with pytest.raises(grpc.RpcError) as refused:
            ask(iter(()), timeout=60, metadata=authorization(TOKEN))
    failure = cast(grpc.Call, refused.value)
    assert failure.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert failure.details() == "ListDevices without a message"


def test_whoever_watches_without_a_token_takes_no_place_of_others(tracker: Server) -> None:
    with ExitStack() as owned:
        channel = owned.enter_context(grpc.insecure_channel(tracker.address))
        stub = health_pb2_grpc.HealthStub(channel)
        watches = []
        for _ in range(80):
            watches.append(stub.Watch(health_pb2.HealthCheckRequest()))
            owned.callback(watches[-1].cancel)
        refused = 0
        for watch in watches:  # which of them come first is the server's threads' affair
            try:
                assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
            except grpc.RpcError:
                assert watch.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                refused += 1
        assert refused == 80 - 64
        stub.Check(health_pb2.HealthCheckRequest(), timeout=60)
        served(tracker.address)


def test_reflection_that_nobody_asks_ends(tracker: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "NEIGHBOUR_SECONDS", 0.3)
    with grpc.insecure_channel(tracker.address) as channel:
        released = threading.Event()
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        call = stub.ServerReflectionInfo(iter(released.wait, True))
        assert call.code() is grpc.StatusCode.UNAVAILABLE
        released.set()


def test_a_user_may_have_half_of_the_places() -> None:
    places = CallSlots(4)
    with ExitStack() as owned:
        owned.enter_context(places.one_for("ann"))
        with places.one_for("ann"), pytest.raises(BusyError, match="ann has 2 calls under way"):
            owned.enter_context(places.one_for("ann"))
        owned.enter_context(places.one_for("ann"))
        for user in ("bob", "eve"):
            owned.enter_context(places.one_for(user))
        with pytest.raises(BusyError, match="this server has 4 calls") as told:
            owned.enter_context(places.one_for("dan"))
        assert told.value.hint
        owned.enter_context(places.one_for_neighbours("Check"))
    with ExitStack() as owned:
        for _ in range(4):
            owned.enter_context(places.one_for(""))
        with pytest.raises(BusyError):
            owned.enter_context(places.one_for(""))


def test_a_place_is_free_again_when_its_call_is_cancelled(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_CALLS", 20)
    tracker = farm.tracker()
    known = (*authorization(TOKEN), *announcement())
    with silent_calls(tracker.address, methods.ACQUIRE.path, known, calls=60) as calls:
        eventually(lambda: sum(call.done() for call in calls) == 40)
        with pytest.raises(BusyError, match="no place for another"):
            served(tracker.address)
    eventually(lambda: is_served(tracker.address))


def is_served(address: str) -> bool:
    try:
        served(address)
    except BusyError:
        return False
    return True


@pytest.mark.parametrize("said", [b"", PREFACE], ids=["nothing", "preface"])
def test_connections_without_a_call_keep_nobody_out(
    said: bytes, farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 64)
    tracker = farm.tracker()
    with TrackerClient(tracker.address, CREDENTIALS) as friend, ExitStack() as owned:
        friend.devices()
        for _ in range(200):
            stranger = owned.enter_context(connect(tracker.address))
            with suppress(OSError):  # refused at once
                stranger.sendall(said)
        eventually(lambda: is_reached(tracker.address))
        assert friend.devices() == []
        assert "crowded" in [event for event, _ in farm.events]


def is_reached(address: str) -> bool:
    try:
        served(address)
    except UnreachableError:
        return False
    return True
