"""How orders are run together: how many, when each ran, and which of them may cost a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from kit.manual_clock import ManualClock
from kit.search.toy_spaces import timed
from tilefarm.digest import Digest
from tilefarm.errors import (
    AnswerError,
    ClockError,
    DeviceLostError,
    DeviceSilentError,
    FarmFault,
    ImplausibleError,
    LeaseError,
    SuspectError,
)
from tilefarm.measurement import Counters, DeviceClock, Measurement, RunFailure, RunJob, Status
from tilefarm.rpc.device_calls import RunReply

from device_server.device.batch import Ask
from driver.farm.device_messages import Order
from driver.farm.measurer import MOST_TOGETHER, Measurer
from driver.farm.plausible import RunBounds
from driver.farm.retrying_client import RetryingClient

JOB = RunJob(artifact=Digest.of(b"code"), entry="kernel", buffers=(), timeout_seconds=1.0)
SPOILED = RunFailure(artifact=JOB.artifact, status=Status.INFRA_ERROR, why="the disk is full")


def measurement(load: float = 0.0, run: float = 0.0) -> Measurement:
    return Measurement(
        artifact=JOB.artifact,
        device="d",
        counters=Counters(cycles=1),
        load_seconds=load,
        run_seconds=run,
    )


def orders(*numbers: int) -> list[Order]:
    return [
        Order(number=n, job=JOB, blobs={}, request_id=f"r{n}", candidate=f"c{n}") for n in numbers
    ]


@dataclass
class Device:
    """Answers so many runs of a call, each within `seconds`; `faults` are raised first, in turn."""

    seconds: float = 0.01
    outcome: Measurement | RunFailure = field(default_factory=measurement)
    faults: list[FarmFault] = field(default_factory=list)
    answers: int = 100
    void: str = ""
    clock: ManualClock = field(default_factory=ManualClock)
    calls: list[str] = field(default_factory=list)
    wrong: bool = False
    confirmed: int = 0

    def measurer(self) -> Measurer:
        client = RetryingClient(
            lambda: self,
            void=lambda: self.void,
            patience_seconds=20.0,
            wait=self._wait,
            clock=self.clock,
        )
        return Measurer(client, slot=3, device="d", clock=self.clock)

    def send_ahead(self, blobs: Mapping[Digest, bytes]) -> None:
        self.clock.advance(0.5)

    def run_batch(self, asked: Sequence[Ask]) -> list[RunReply]:
        self.calls.append(" ".join(one.request_id for one in asked))
        if self.faults:
            self.clock.advance(1.0)
            raise self.faults.pop(0)
        answered = asked[: self.answers]
        self.clock.advance(self.seconds * len(answered))
        return [RunReply(outcome=self.outcome, unchecked=n) for n, _ in enumerate(answered, 1)]

    def confirm(self) -> None:
        self.confirmed += 1
        if self.wrong:
            raise SuspectError("device d is not right any more")

    def close(self) -> None:
        pass

    def _wait(self, seconds: float) -> bool:
        self.clock.advance(seconds)
        return False


def silence() -> FarmFault:
    return DeviceSilentError("device d: silence")


@pytest.mark.parametrize(
    ("seconds", "together"), [(0.25, 1), (0.06, 1), (0.04, 2), (0.015, 6), (0.0001, MOST_TOGETHER)]
)
def test_short_runs_are_worth_a_call_of_several(seconds: float, together: int) -> None:
    measurer = Device(seconds).measurer()
    assert measurer.together == 1, "nothing is known yet"
    measurer.run(orders(1))
    assert measurer.together == together


@pytest.mark.parametrize(
    ("clock", "outcome", "tells"),
    [
        (DeviceClock.CYCLES, measurement(), True),
        (DeviceClock.CYCLES, replace(measurement(), counters=Counters()), False),
        (DeviceClock.CYCLES, replace(measurement(), counters=None, wall_time=timed(1e-5)), False),
        (DeviceClock.SECONDS, replace(measurement(), wall_time=timed(1e-5)), True),
        (DeviceClock.SECONDS, measurement(), False),
        (None, replace(measurement(), counters=Counters()), True),
        (DeviceClock.CYCLES, SPOILED, True),
    ],
)
def test_what_is_to_be_timed_is_timed_by_the_clock_of_the_device(
    clock: DeviceClock | None, outcome: Measurement | RunFailure, tells: bool
) -> None:
    device = Device(outcome=outcome)
    measurer = device.measurer()
    asked = [replace(order, clock=clock) for order in orders(4)]
    if tells:
        assert len(measurer.run(asked)) == 1
        return
    with pytest.raises(ClockError, match="device d does not say how long") as raised:
        measurer.run(asked)
    assert raised.value.hint
    assert measurer.number == 4, "it is known which run has shown it"


def test_runs_that_get_longer_are_soon_asked_for_one_by_one() -> None:
    device = Device(0.02)
    measurer = device.measurer()
    measurer.run(orders(1))
    device.seconds = 2.0
    measurer.run(orders(2))
    assert measurer.together == 1


def test_a_device_that_spoils_a_run_gets_the_next_one_alone() -> None:
    device = Device(0.001)
    measurer = device.measurer()
    measurer.run(orders(1, 2))
    device.outcome = SPOILED
    assert measurer.run(orders(3, 4))[0].is_spoiled
    assert measurer.together == 1


def test_several_are_one_call_and_the_answers_may_be_those_of_the_first() -> None:
    device = Device(answers=2)
    done = device.measurer().run(orders(1, 2, 3))
    assert device.calls == ["r1 r2 r3"]
    assert [(d.slot, d.device, d.number, d.unchecked) for d in done] == [
        (3, "d", 1, 1),
        (3, "d", 2, 2),
    ]


def test_the_time_of_a_call_is_shared_by_what_each_run_took_there() -> None:
    device = Device(1.0)
    measurer = device.measurer()
    device.outcome = measurement(load=0.25, run=0.25)
    began = device.clock.wall_seconds()
    first, second = measurer.run(orders(1, 2))
    assert first.began_seconds == began
    assert first.sent_seconds == began + 0.5
    assert first.ended_seconds == second.began_seconds == second.sent_seconds == began + 1.5
    assert second.ended_seconds == began + 2.5


def test_a_device_that_claims_more_seconds_than_passed_ends_no_run_after_its_answer() -> None:
    device = Device(1.0, measurement(run=60.0))
    began = device.clock.wall_seconds()
    done = device.measurer().run(orders(1, 2))
    assert [d.ended_seconds <= began + 2.5 for d in done] == [True, True]
    assert all(d.began_seconds <= d.sent_seconds <= d.ended_seconds for d in done)


def test_after_silence_the_first_is_asked_for_alone_under_the_same_id() -> None:
    device = Device(faults=[silence(), silence()])
    measurer = device.measurer()
    assert [d.number for d in measurer.run(orders(1, 2))] == [1]
    assert device.calls == ["r1 r2", "r1", "r1"]
    assert (measurer.number, measurer.perhaps) == (0, ())


def test_when_silence_lasts_it_may_be_any_of_those_that_were_asked_for() -> None:
    device = Device(faults=[silence() for _ in range(100)])
    measurer = device.measurer()
    with pytest.raises(DeviceLostError, match=r"for 2[01] s now"):
        measurer.run(orders(4, 5))
    assert (measurer.number, measurer.perhaps) == (0, (4, 5))


def test_when_the_lease_is_void_after_silence_it_may_be_any_as_well() -> None:
    device = Device(faults=[silence(), silence()], void="the device has started anew")
    measurer = device.measurer()
    with pytest.raises(LeaseError, match="started anew"):
        measurer.run(orders(4, 5))
    assert (measurer.number, measurer.perhaps) == (0, (4, 5))


@pytest.mark.parametrize("numbers", [(4,), (4, 5)])
def test_what_a_device_says_itself_is_about_the_first(numbers: tuple[int, ...]) -> None:
    device = Device(faults=[DeviceLostError("device d hangs")])
    measurer = device.measurer()
    with pytest.raises(DeviceLostError, match="hangs"):
        measurer.run(orders(*numbers))
    assert (measurer.number, measurer.perhaps) == (4, ())


LEAST = RunBounds(least_cycles=64)


def bounded(*numbers: int) -> list[Order]:
    """Orders of kernels of their own, each of which takes 64 cycles at least."""
    return [
        replace(
            order,
            job=replace(JOB, artifact=Digest.of(b"code %d" % order.number)),
            bounds=LEAST,
        )
        for order in orders(*numbers)
    ]


def one_cycle(number: int) -> Measurement:
    return replace(measurement(), artifact=Digest.of(b"code %d" % number))


def test_what_cannot_be_is_done_again_and_the_device_proves_itself() -> None:
    device = Device(outcome=one_cycle(4))
    (done,) = device.measurer().run(bounded(4))
    assert isinstance(done.result, RunFailure)
    assert done.result.status is Status.IMPLAUSIBLE
    assert done.result.why == (
        "device d says 1 cycle, where no schedule takes fewer than 64; its known kernel is right"
    )
    assert done.is_spoiled
    assert done.unchecked, "what it gave before is as sure as it was"
    assert device.confirmed == 1


def test_a_device_that_is_wrong_as_well_is_suspect() -> None:
    device = Device(outcome=one_cycle(4), wrong=True)
    measurer = device.measurer()
    with pytest.raises(SuspectError, match="not right any more"):
        measurer.run(bounded(4))
    assert measurer.number == 4


def test_the_same_kernel_again_is_held_against_no_device() -> None:
    device = Device(outcome=one_cycle(4))
    measurer = device.measurer()
    for _ in range(3):
        assert measurer.run(bounded(4))[0].is_implausible


def test_a_device_that_says_so_of_another_kernel_too_is_not_believed() -> None:
    device = Device(outcome=one_cycle(4))
    measurer = device.measurer()
    measurer.run(bounded(4))
    device.outcome = one_cycle(5)
    with pytest.raises(ImplausibleError, match=r"device d says 1 cycle.* of another kernel"):
        measurer.run(bounded(5))
    assert measurer.number == 5


def test_an_answer_that_is_none_is_implausible_too() -> None:
    nonsense = AnswerError("device d answered Run out of protocol: Counters.cycles is 2^63")
    device = Device(outcome=one_cycle(4), faults=[nonsense])
    (done,) = device.measurer().run(bounded(4))
    assert done.is_implausible
    assert isinstance(done.result, RunFailure)
    assert "out of protocol" in done.result.why


def test_of_several_it_is_found_out_which() -> None:
    nonsense = AnswerError("device d answered RunBatch out of protocol")
    device = Device(faults=[nonsense])
    (done,) = device.measurer().run(orders(4, 5))
    assert device.calls == ["r4 r5", "r4"]
    assert isinstance(done.result, Measurement)


def test_an_answer_of_earlier_is_as_old_as_the_first_asking() -> None:
    """What ran before a silence is answered from the device's cache when it is asked again."""
    device = Device(outcome=measurement(run=0.9), faults=[silence()])
    measurer = device.measurer()
    assert len(measurer.run(orders(4, 5))) == 1
    (done,) = measurer.run(orders(5))
    assert isinstance(done.result, Measurement)


def test_the_time_of_another_order_is_no_excuse() -> None:
    device = Device(outcome=measurement(run=5.0))
    (done,) = device.measurer().run(orders(4))
    assert done.is_implausible
