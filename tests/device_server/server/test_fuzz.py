"""Whatever is sent to whatever method: a typed answer in time, and servers that go on."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Any, Final, cast

import grpc
import numpy as np
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from kit.farm.in_process import CREDENTIALS, TOKEN, Farm, Server
from kit.messages.mutations import damaged_bytes, damaged_fields
from kit.messages.specimens import filled
from kit.objects.elves import Elf
from tilefarm.digest import Digest
from tilefarm.lease import Lease
from tilefarm.rpc import device_calls, methods
from tilefarm.rpc.caller import authorization
from tilefarm.rpc.status import NAME_KEY
from tilefarm.v1 import device_pb2

from device_server.device.client import DeviceClient
from device_server.tracker.client import TrackerClient
from device_server.tracker.limits import TableLimits

METHODS: Final[list[methods.Method[Any, Any]]] = [
    value for value in vars(methods).values() if isinstance(value, methods.Method)
]
CODE: Final = Elf().build()
DEADLINE_SECONDS: Final = 5.0
BY_GRPC: Final = {grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED}
"""What gRPC answers by itself, without the name of an error of ours."""
NEVER: Final = {
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.CANCELLED,
}


class Target:
    """A tracker and a device on unix sockets, and requests that they would answer well.

    The device is registered elsewhere: one that loses its name to somebody else gives up.
    """

    def __init__(self, farm: Farm, channels: ExitStack) -> None:
        self.farm = farm
        self._leased: dict[str, Any] = {}
        home = farm.tracker()
        device = farm.device(
            tracker=home, settings=lambda s: replace(s, listen=f"unix:{farm.folder}/device.sock")
        )
        tracker = farm.tracker(
            listen=f"unix:{farm.folder}/tracker.sock", limits=TableLimits(device_ttl_seconds=2.0)
        )
        self._channels = {
            methods.TRACKER: channels.enter_context(grpc.insecure_channel(tracker.address)),
            methods.DEVICE: channels.enter_context(grpc.insecure_channel(device.address)),
        }
        lease = _lease(home, farm)
        with DeviceClient(lease, CREDENTIALS) as client:
            client.ensure({Digest.of(CODE): CODE})
        code = bytes.fromhex(Digest.of(CODE).hex)
        self._known: dict[str, Any] = {
            **asdict(device_calls.Claim.of(lease)),
            **dict.fromkeys(("artifact", "digest", "content", "expected"), code),
            **{"target": bytes.fromhex(farm.target.digest.hex), "name": "sim0", "entry": "echo"},
            **{"data": CODE, "offset": 0, "nbytes": len(CODE), "role": device_pb2.ROLE_INPUT},
            **{"blobs": CODE, "wait_seconds": 0.02, "samples": 1, "repeats": 2},
        }
        register = self.sound(methods.REGISTER).SerializeToString()
        assert self.outcome(methods.REGISTER, [register])[0] is grpc.StatusCode.OK
        self._leased = {"lease_id": _lease(tracker, farm).lease_id, "fence": 7}
        self.words = ["", "?", "../../x", "echo", "x" * 300, "\0", *map(str, self._known.values())]

    def sound(self, method: methods.Method[Any, Any]) -> Message:
        """A request that means something here."""
        message = next(filled(method.request.message))
        leased = self._leased if method.service == methods.TRACKER else {}
        _fit(message, {**self._known, **leased})
        return message

    def outcome(
        self, method: methods.Method[Any, Any], requests: list[bytes]
    ) -> tuple[grpc.StatusCode, str]:
        """How a call ends, and the name of the error that it ends with."""
        # A wish for a device may be to wait for hours, which is no hang.
        waits = method.name == methods.ACQUIRE.name
        # What every server answers is asked of the device.
        channel = self._channels.get(method.service, self._channels[methods.DEVICE])
        call = channel.stream_stream(method.path, bytes, bytes)
        replies = call(
            iter(requests),
            timeout=0.05 if waits else DEADLINE_SECONDS,
            metadata=authorization(TOKEN),
        )
        try:
            for _ in replies:
                pass
        except grpc.RpcError as error:
            failure = cast(grpc.Call, error)
            if waits and failure.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                return grpc.StatusCode.OK, ""
            named = dict(failure.trailing_metadata() or ())
            return failure.code(), str(named.get(NAME_KEY, "")) or f"UNNAMED {failure.details()}"
        return grpc.StatusCode.OK, ""

    def answers(self) -> bool:
        """Whether both servers still do."""
        for method in (methods.LIST_DEVICES, methods.GET_CAPABILITIES):
            code, _ = self.outcome(method, [b""])
            assert code is grpc.StatusCode.OK, method.name
        return True


def _lease(tracker: Server, farm: Farm) -> Lease:
    with TrackerClient(tracker.address, CREDENTIALS) as client:
        lease = client.acquire(farm.target.digest, wait_seconds=60.0, owner="fuzz")
    assert lease is not None
    return lease


def _fit(message: Message, known: Mapping[str, Any]) -> None:
    """Gives fields the values that mean something, by their names."""
    for field, value in message.ListFields():
        if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
            for part in value if field.is_repeated else [value]:
                _fit(part, known)
        elif field.name in known and not field.is_repeated:
            setattr(message, field.name, known[field.name])
        elif field.name in known:
            getattr(message, field.name)[:] = [known[field.name]]


def requests(sound: Message, words: list[str], rng: np.random.Generator) -> list[bytes]:
    """One to three messages: sound, with other fields, with other bytes, or noise."""
    contents = []
    for _ in range(int(rng.integers(1, 4))):
        match rng.integers(6):
            case 0:
                contents.append(sound.SerializeToString())
            case 1:
                contents.append(rng.bytes(int(rng.integers(100))))
            case 2 if sound.ByteSize():
                contents.append(damaged_bytes(sound.SerializeToString(), rng))
            case _:
                contents.append(damaged_fields(sound, words, rng).SerializeToString())
    return contents


def bombard(
    target: Target, rng: np.random.Generator, *, rounds: int, seconds: float
) -> Counter[str]:
    """Calls every method in turn, with one thing after the other; how often each ended how."""
    ends: Counter[str] = Counter()
    until = time.monotonic() + seconds
    for _ in range(rounds):
        for method in METHODS:
            sent = requests(target.sound(method), target.words, rng)
            sent = sent if method.sends_many else sent[:1]
            code, name = target.outcome(method, sent)
            story = f"{method.name}: {code} {name}: {[content.hex() for content in sent]}"
            assert code not in NEVER, story
            assert name or code is grpc.StatusCode.OK or code in BY_GRPC, story
            assert code is not grpc.StatusCode.DEADLINE_EXCEEDED, f"it hangs: {story}"
            ends[f"{method.name} {code.name}"] += 1
        if time.monotonic() > until:
            break
    faults = [fields for event, fields in target.farm.events if event == "fault"]
    assert not faults, faults[0]
    assert target.answers()
    return ends


@pytest.fixture
def target(farm: Farm) -> Iterator[Target]:
    with ExitStack() as channels:
        yield Target(farm, channels)


def test_what_is_sound_is_answered_by_every_method(target: Target) -> None:
    """Otherwise what follows would only knock at closed doors."""
    # What takes the device off the list comes last.
    for method in sorted(METHODS, key=lambda method: method.name == "Deregister"):
        code, name = target.outcome(method, [target.sound(method).SerializeToString()])
        assert code is grpc.StatusCode.OK, f"{method.name}: {name}"


def test_no_method_is_upset(target: Target) -> None:
    ends = bombard(target, np.random.default_rng(1), rounds=15, seconds=60.0)
    assert {end.split(" ")[0] for end in ends} == {method.name for method in METHODS}


@pytest.mark.slow
def test_no_method_is_upset_for_a_while(target: Target, capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("FUZZ_SEED", "1"))
    with capsys.disabled():
        print(f"\nFUZZ_SEED={seed}")
        ends = bombard(target, np.random.default_rng(seed), rounds=1_000_000, seconds=20.0)
        print(
            f"{ends.total()} calls: " + ", ".join(f"{n} {end}" for end, n in sorted(ends.items()))
        )
    assert {end.split(" ")[0] for end in ends} == {method.name for method in METHODS}
