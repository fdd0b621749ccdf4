"""A client that asks a silent device again: with what, for how long, and when it stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from kit.manual_clock import ManualClock
from tilefarm.digest import Digest
from tilefarm.errors import DeviceLostError, DeviceSilentError, FarmFault, LeaseError
from tilefarm.measurement import RunFailure, RunJob, Status
from tilefarm.rpc.device_calls import RunReply

from device_server.device.batch import Ask
from driver.farm.retrying_client import RetryingClient

JOB = RunJob(artifact=Digest.of(b"code"), entry="kernel", buffers=(), timeout_seconds=1.0)
BLOBS = {JOB.artifact: b"code"}
ASK = Ask(job=JOB, request_id="r7", blobs=BLOBS)
CRASH = RunFailure(artifact=JOB.artifact, status=Status.RUN_CRASH, why="signal 11")
ANSWER = RunReply(outcome=CRASH, unchecked=3)


@dataclass
class Scene:
    """A device that is silent for so many calls, each of which takes a second to notice."""

    silent: int
    void: str = ""
    closing_after: int = 1000
    error: FarmFault = field(default_factory=lambda: DeviceSilentError("device d: silence"))
    clock: ManualClock = field(default_factory=ManualClock)
    requests: list[str] = field(default_factory=list)
    connections: int = 0
    closed: int = 0

    def client(self) -> RetryingClient:
        return RetryingClient(
            self.connect,
            void=lambda: self.void,
            patience_seconds=20.0,
            wait=self.wait,
            clock=self.clock,
        )

    def connect(self) -> Scene:
        self.connections += 1
        return self

    def wait(self, seconds: float) -> bool:
        self.clock.advance(seconds)
        self.closing_after -= 1
        return self.closing_after < 0

    def send_ahead(self, blobs: Mapping[Digest, bytes]) -> None:
        self._answers("send ahead")

    def run_batch(self, asked: Sequence[Ask]) -> list[RunReply]:
        self._answers(" ".join(one.request_id for one in asked))
        return [ANSWER for _ in asked]

    def confirm(self) -> None:
        self._answers("confirm")

    def close(self) -> None:
        self.closed += 1

    def _answers(self, request: str) -> bool:
        self.requests.append(request)
        if len(self.requests) <= self.silent:
            self.clock.advance(1.0)
            raise self.error
        return True


def test_the_same_request_is_asked_on_a_new_connection() -> None:
    scene = Scene(silent=3)
    assert scene.client().run(ASK) is ANSWER
    assert scene.requests == ["r7"] * 4
    assert (scene.connections, scene.closed) == (4, 3)


def test_an_upload_is_asked_again_too() -> None:
    scene = Scene(silent=1)
    scene.client().send_ahead(BLOBS)
    assert scene.requests == ["send ahead"] * 2


def test_silence_has_an_end() -> None:
    scene = Scene(silent=1000)
    with pytest.raises(DeviceLostError, match=r"silence; for 2[01] s now") as lost:
        scene.client().run(ASK)
    assert not isinstance(lost.value, DeviceSilentError)
    assert 20.0 <= scene.clock.seconds() < 23.0


def test_nobody_waits_for_a_device_that_the_tracker_has_given_up() -> None:
    scene = Scene(silent=1000, void="the lease has expired")
    with pytest.raises(LeaseError, match="silence; the lease has expired"):
        scene.client().run(ASK)
    assert scene.requests == ["r7"]


def test_nobody_waits_for_a_device_that_is_gone() -> None:
    scene = Scene(silent=1000, error=DeviceLostError("device d: nobody listens there"))
    with pytest.raises(DeviceLostError, match="nobody listens there"):
        scene.client().run(ASK)
    assert scene.requests == ["r7"]


def test_a_search_that_ends_waits_no_longer() -> None:
    scene = Scene(silent=1000, closing_after=2)
    with pytest.raises(DeviceSilentError):
        scene.client().run(ASK)
    assert scene.requests == ["r7"] * 3


def test_several_runs_are_asked_for_once_and_the_next_word_is_on_a_new_connection() -> None:
    scene = Scene(silent=1)
    client = scene.client()
    both = [ASK, replace(ASK, request_id="r8")]
    with pytest.raises(DeviceSilentError):
        client.run_batch(both)
    assert (scene.requests, scene.connections, scene.closed) == (["r7 r8"], 2, 1)
    assert client.run_batch(both) == [ANSWER, ANSWER]


def test_confirming_is_patient_too() -> None:
    scene = Scene(silent=1)
    scene.client().confirm()
    assert scene.requests == ["confirm", "confirm"]
