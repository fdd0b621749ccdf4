"""Has a leased device run orders: short ones several in one call, as each call costs a millisecond.

    put 1 2 3 4 ─► run_batch(1 2 3 4) ─┬─► 1 2 3 were run; 4 is asked for again
                                       └─► silence: 1 is asked for alone, and patiently

If the device is lost after such a silence, one of all those that were asked for may have done it.
What a device refuses to run is a result: it is well, and every other one would refuse it too.

What cannot be is none. The device proves itself by its known kernel, and the run is made again,
elsewhere if there is another. If the device says so of another artifact too, it is not believed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final

from tilefarm.clock import Clock
from tilefarm.digest import Digest
from tilefarm.errors import (
    AnswerError,
    BusyError,
    CapacityError,
    ClockError,
    DeviceSilentError,
    ImplausibleError,
    ProtocolError,
    TilefarmError,
    UserError,
)
from tilefarm.measurement import DeviceClock, Measurement, RunFailure, Status, is_spoiled
from tilefarm.rpc.device_calls import RunReply
from tilefarm.watch.trace_context import about

from device_server.device.batch import Ask
from driver.farm.device_messages import Order, RunEnded
from driver.farm.plausible import implausibility
from driver.farm.retrying_client import RetryingClient

TOGETHER_SECONDS: Final = 0.1
"""What a call with several runs may last: whoever else wants the device waits for it."""
MOST_TOGETHER: Final = 8
_REFUSED: Final[Mapping[type[TilefarmError], Status]] = {
    CapacityError: Status.RESOURCE_EXCEEDED,
    ProtocolError: Status.LOAD_ERROR,
    UserError: Status.LOAD_ERROR,
}
"""How a run ends that asks for more than a device has, or for what makes no sense."""
_MEMORY: Final = 0.5
"""Weight of the past in the running mean of a run's seconds."""


class Measurer:
    """Asks one device, from one thread.

    Args:
        slot, device: the names to put into messages.

    Attributes:
        number: of the order that a fault raised by `run` is about, 0 if that is not known;
        perhaps: then the numbers of those that it may be about.
    """

    def __init__(self, client: RetryingClient, *, slot: int, device: str, clock: Clock) -> None:
        self.number = 0
        self.perhaps: tuple[int, ...] = ()
        self._client = client
        self._slot = slot
        self._device = device
        self._clock = clock
        self._seconds = 0.0
        self._asked: dict[str, tuple[float, float]] = {}
        """When a request was first made, by both clocks: one does not count a machine's sleep."""
        self._implausible: set[Digest] = set()
        """Artifacts that the device has said of what cannot be."""

    @property
    def together(self) -> int:
        """How many runs are worth one call, by what they have taken so far."""
        if not self._seconds:
            return 1
        return max(1, min(int(TOGETHER_SECONDS / self._seconds), MOST_TOGETHER))

    def run(self, orders: Sequence[Order]) -> list[RunEnded]:
        """How the first of these orders ended, one at least.

        Raises:
            ClockError: the device does not tell how long something took that has to be timed.
            SuspectError: it said what cannot be, and its known kernel is wrong; ImplausibleError if
                it is right, but this is not the first artifact that it says so of.
            What `Client.run_batch` does but refusals, and a device's silence only when it lasts.
        """
        first = orders[0]
        self.number, self.perhaps = first.number, ()
        began = sent = self._clock.wall_seconds()
        for order in orders:
            self._asked.setdefault(order.request_id, (self._clock.seconds(), began))
        try:
            with about(first.candidate, first.request_id):
                self._client.send_ahead(first.blobs)
            sent = self._clock.wall_seconds()
            answers = self._answers(orders)
        except BusyError:
            raise
        except tuple(_REFUSED) as refusal:
            answers = [self._refused(first, refusal)]
        ended = self._clock.wall_seconds()
        answers = [self._believed(*each) for each in zip(orders, answers, strict=False)]
        self._require_times(orders, answers)
        self.number, self.perhaps = 0, ()
        self._learn((ended - sent) / len(answers), answers)
        return self._told(orders, answers, (began, sent, ended))

    def _answers(self, orders: Sequence[Order]) -> Sequence[RunReply]:
        asked = [
            Ask(
                job=order.job,
                request_id=order.request_id,
                blobs=order.blobs,
                candidate=order.candidate,
            )
            for order in orders
        ]
        if len(asked) > 1:
            try:
                return self._client.run_batch(asked)
            except DeviceSilentError:
                self.number, self.perhaps = 0, tuple(order.number for order in orders)
            except AnswerError:
                pass  # It is seen which of them it is about.
        with about(asked[0].candidate, asked[0].request_id):
            try:
                return [self._client.run(asked[0])]
            except AnswerError as nonsense:
                return [self._disbelieved(orders[0], nonsense.what)]

    def _believed(self, order: Order, answer: RunReply) -> RunReply:
        """The answer, or what is made of one that cannot be."""
        seconds, wall_seconds = self._asked.pop(order.request_id)
        waited = max(self._clock.seconds() - seconds, self._clock.wall_seconds() - wall_seconds)
        why = implausibility(answer.outcome, order.job, order.bounds, waited_seconds=waited)
        return self._disbelieved(order, f"device {self._device} says {why}") if why else answer

    def _disbelieved(self, order: Order, why: str) -> RunReply:
        """The end of a run of which a device that is right says what cannot be.

        Raises:
            SuspectError: it is not right, or not to be believed.
        """
        self.number, self.perhaps = order.number, ()
        self._client.confirm()
        self._implausible.add(order.job.artifact)
        if len(self._implausible) > 1:
            raise ImplausibleError(f"{why}; and what cannot be of another kernel too")
        failure = RunFailure(
            artifact=order.job.artifact,
            status=Status.IMPLAUSIBLE,
            why=f"{why}; its known kernel is right",
            device=self._device,
        )
        return RunReply(outcome=failure, unchecked=1)

    def _require_times(self, orders: Sequence[Order], answers: Sequence[RunReply]) -> None:
        for order, answer in zip(orders, answers, strict=False):
            outcome = answer.outcome
            if order.clock is None or not isinstance(outcome, Measurement):
                continue
            told = outcome.wall_time if order.clock is DeviceClock.SECONDS else outcome.cycles
            if not told:
                self.number, self.perhaps = order.number, ()
                raise ClockError(
                    f"device {self._device} does not say how long kernels take:"
                    f" it told no {order.clock.value}",
                    "serve it with this version's `tilefarm device`: where a library counts no"
                    " cycles, it times kernels by the clock",
                )

    def _refused(self, order: Order, refusal: TilefarmError) -> RunReply:
        """A result that confirms none of those before it."""
        status = next(status for kind, status in _REFUSED.items() if isinstance(refusal, kind))
        why = f"{refusal.what} (try: {refusal.hint})" if refusal.hint else refusal.what
        failure = RunFailure(
            artifact=order.job.artifact, status=status, why=why, device=self._device
        )
        return RunReply(outcome=failure, unchecked=1)

    def _learn(self, seconds: float, answers: Sequence[RunReply]) -> None:
        if any(is_spoiled(answer.outcome) for answer in answers):
            self._seconds = 0.0  # It has other troubles.
        else:
            past = self._seconds or seconds
            self._seconds = _MEMORY * past + (1 - _MEMORY) * seconds

    def _told(
        self,
        orders: Sequence[Order],
        answers: Sequence[RunReply],
        times: tuple[float, float, float],
    ) -> list[RunEnded]:
        """The answers with wall seconds; within one call the runs share what none has spent."""
        began, sent, ended = times
        spent = [_seconds(answer.outcome) for answer in answers]
        shared = max(0.0, ended - sent - sum(spent)) / len(answers)
        begins = accumulate((seconds + shared for seconds in spent[:-1]), initial=sent)
        bounds = pairwise([*(min(begin, ended) for begin in begins), ended])
        return [
            RunEnded(
                slot=self._slot,
                device=self._device,
                number=order.number,
                result=answer.outcome,
                began_seconds=began if begin == sent else begin,
                sent_seconds=begin,
                ended_seconds=end,
                unchecked=answer.unchecked,
            )
            for order, answer, (begin, end) in zip(orders, answers, bounds, strict=False)
        ]


def _seconds(outcome: Measurement | RunFailure) -> float:
    """What the device says that a run took."""
    loading = outcome.load_seconds if isinstance(outcome, Measurement) else 0.0
    return loading + outcome.run_seconds
