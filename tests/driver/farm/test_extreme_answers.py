"""Whatever number a device puts wherever: a search ends as without it, and a run with a reason."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from google.protobuf.descriptor import FieldDescriptor
from kit.search.scene import Scene
from kit.search.stand_ins import StandInClient, StandInDevices, cycles_of_tile
from kit.search.toy_spaces import timed
from tilefarm.errors import AnswerError
from tilefarm.measurement import CallTime, Measurement, RunJob, Status
from tilefarm.rpc.device_calls import RunReply
from tilefarm.rpc.wire import RUN_REPLY
from tilefarm.v1 import device_pb2

from device_server.device.batch import Ask

EXTREMES: Final[dict[int, tuple[float, ...]]] = {
    FieldDescriptor.TYPE_DOUBLE: (math.nan, 0.0, 1e-300, 1e9),
    FieldDescriptor.TYPE_UINT64: (1, 1 << 53, 1 << 63),
    FieldDescriptor.TYPE_UINT32: (0, (1 << 32) - 1),
}
LEAST: Final = 50
"""Cycles of any schedule of the toys; the best takes 83, the worst 1000."""
SLOWEST: Final = 1000

Place = tuple[str, ...]


def numbers(kind: Any, within: Place = ()) -> Iterator[tuple[Place, int]]:
    """Where in an answer there are numbers, and of which type."""
    for field in kind.fields:
        place = (*within, field.name)
        if field.message_type is not None and field.name not in ("failure", "outputs"):
            yield from numbers(field.message_type, place)
        elif field.type in EXTREMES:
            yield place, field.type


PLACES: Final = dict(numbers(device_pb2.RunResponse.DESCRIPTOR))


def put(message: Any, place: Place, value: float) -> None:
    """The number where it belongs; in the first of a list."""
    *path, last = place
    for name in path:
        message = getattr(message, name)
        message = message[0] if hasattr(message, "append") else message
    if isinstance(getattr(message, last), int | float):
        setattr(message, last, value)
    else:
        getattr(message, last)[:] = [value]


def full(code: bytes, job: RunJob) -> Measurement:
    """An answer that has all that an answer may have."""
    found = cycles_of_tile(code, job)
    assert found.cycles is not None
    return replace(
        found,
        sample_cycles=(found.cycles,),
        seconds=(1e-6,),
        wall_time=timed(1e-6),
        profile=(CallTime(cycles=found.cycles, wall_time=timed(1e-6)),),
    )


def extreme(place: Place, value: float) -> StandInDevices:
    """Two devices, the first of which says one number otherwise than it is."""

    class Extreme(StandInClient):
        def run_batch(self, asked: Sequence[Ask]) -> list[RunReply]:
            answers = super().run_batch(asked)
            return [said(answer) for answer in answers] if self.name == "sim0" else answers

    def said(answer: RunReply) -> RunReply:
        told = RUN_REPLY.encode(RunReply(outcome=answer.outcome, unchecked=answer.unchecked))
        message = device_pb2.RunResponse.FromString(told)
        put(message, place, value)
        try:
            return RUN_REPLY.decode(message.SerializeToString())
        except ValueError as error:
            raise AnswerError(f"device sim0 answers out of protocol: {error}") from None

    return StandInDevices(2, full, unchecked=1, client=Extreme)


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driver.farm.device_thread.rest_seconds", lambda _: 0.0)


def test_there_are_numbers_everywhere() -> None:
    assert ("measurement", "counters", "cycles") in PLACES
    assert ("measurement", "profile", "wall_time", "calls") in PLACES
    assert ("queue_seconds",) in PLACES


TELLING: Final = {
    ("measurement", "counters", "cycles"),
    ("measurement", "wall_time", "median_seconds"),
    ("unchecked",),
}
"""One of each type; the others take a minute."""


@pytest.mark.parametrize(
    "place",
    [pytest.param(p, marks=() if p in TELLING else pytest.mark.slow) for p in PLACES],
    ids=".".join,
)
def test_a_search_survives_and_keeps_nothing_impossible(place: Place) -> None:
    for value in EXTREMES[PLACES[place]]:
        scene = Scene(extreme(place, value), count=2, together=True, least_cycles=LEAST)
        result = scene.play()
        assert result.why == "exhausted", value
        costs = [trial.cycles or 0 for trial in scene.kept if trial.status is Status.OK]
        assert len(costs) == len(scene.kept) == 12, value
        assert min(costs) >= LEAST, value
        assert max(costs) == SLOWEST, value
