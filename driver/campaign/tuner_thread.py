"""The tuner on a thread of its own: while it thinks, builds and runs go on.

Results wait for the next question and go with it: the thread is not woken for each of them.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from tilefarm.clock import Clock
from tilefarm.measurement import Trial
from tilefarm.threads import start_thread

from tuner.session import GivenUp, Proposal, TuningSession

_ANSWER_SECONDS: Final = 0.05
"""After so long an answer goes with what there is: the first look at a large space takes tenths of
a second, and workers need not wait for that of two dozen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """The answer to one question, with the wall seconds of its making.

    It may have fewer than were asked for; only an empty one means that there are no more for now.
    `given_up` are tasks of which nothing more is proposed since the last one.
    """

    proposals: tuple[Proposal, ...]
    given_up: tuple[GivenUp, ...]
    began_seconds: float
    ended_seconds: float


_News: TypeAlias = list[tuple[int, Trial]]
Report = Callable[[Proposals | Exception], None]


class TunerThread:
    """Owns a session from now on; spoken to from one thread.

    Args:
        report: takes the answers, on this thread; an exception means that the tuner broke.
    """

    def __init__(self, session: TuningSession, *, report: Report, clock: Clock) -> None:
        self._session = session
        self.known = session.told
        """Trials that it knew before."""
        self.budget = session.budget
        """Trials at most, those included."""
        self._report = report
        self._clock = clock
        self._news: _News = []
        self._queue: queue.SimpleQueue[tuple[_News, int | None]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to answer."""
        self._thread = start_thread(self._main, name="tuner", broken=self._report)

    def ask(self, count: int) -> None:
        """Ask for at most so many candidates; answered once."""
        self._put(count)

    def tell(self, number: int, trial: Trial) -> None:
        """Let it know how a candidate ended."""
        self._news.append((number, trial))

    def close(self) -> None:
        """Answer what was asked, learn what was told, and end."""
        self._put(None)
        if self._thread is not None:
            self._thread.join()

    def _put(self, count: int | None) -> None:
        """A question, or the end, behind the news since the last one."""
        news, self._news = self._news, []
        self._queue.put((news, count))

    def _main(self) -> None:
        while True:
            news, count = self._queue.get()
            for number, trial in news:
                self._session.tell(number, trial)
            if count is None:
                return
            self._answer(count)

    def _answer(self, count: int) -> None:
        began = self._clock.wall_seconds()
        late = self._clock.seconds() + _ANSWER_SECONDS
        proposals: list[Proposal] = []
        while more := self._session.ask(1):
            proposals += more
            if len(proposals) >= count or self._clock.seconds() >= late:
                break
        ended = self._clock.wall_seconds()
        self._report(
            Proposals(
                proposals=tuple(proposals),
                given_up=tuple(self._session.given_up()),
                began_seconds=began,
                ended_seconds=ended,
            )
        )
