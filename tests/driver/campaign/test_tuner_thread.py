"""The tuner's thread: what it has learnt when it answers, and when it ends."""

from __future__ import annotations

import queue

from kit.manual_clock import ManualClock
from kit.search.stand_ins import toy_task
from kit.search.toy_spaces import trial_of
from tilefarm.clock import SystemClock
from tilefarm.measurement import Trial

from driver.campaign.tuner_thread import Proposals, TunerThread
from tuner.lookahead import Lookahead
from tuner.session import Proposal, TuningSession, WeightedSpace

SECONDS = 30.0


class Heard(TuningSession):
    """A session that remembers what it was told, and how much of that before each question."""

    def __init__(self, lookahead: int = 32) -> None:
        task = toy_task()
        super().__init__(
            {"toy": WeightedSpace(task.space, weight=1)},
            trials=20,
            proposer="random",
            lookahead=Lookahead(lookahead),
        )
        self.trials: list[Trial] = []
        self.known: list[int] = []

    def tell(self, number: int, trial: Trial) -> None:
        self.trials.append(trial)
        super().tell(number, trial)

    def ask(self, n: int) -> list[Proposal]:
        self.known.append(len(self.trials))
        return super().ask(n)


def test_an_answer_knows_all_that_was_told_before_it_was_asked_for() -> None:
    session = Heard()
    answers: queue.SimpleQueue[Proposals | BaseException] = queue.SimpleQueue()
    thread = TunerThread(session, report=answers.put, clock=SystemClock())
    thread.start()
    trials = [trial_of({"inner": n, "outer": 12 // n, "extent": 12}, cycles=n) for n in (1, 2, 3)]
    thread.tell(1, trials[0])
    thread.tell(2, trials[1])
    thread.ask(1)
    assert isinstance(answers.get(timeout=SECONDS), Proposals)
    assert session.trials == trials[:2]
    thread.ask(1)
    assert isinstance(answers.get(timeout=SECONDS), Proposals)
    thread.tell(3, trials[2])
    thread.close()
    assert session.trials == trials
    assert session.known == [2, 2]


class Slow(TuningSession):
    """A session that thinks for a second about each candidate, by a clock that only it moves."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__({"toy": WeightedSpace(toy_task().space)}, trials=20, proposer="random")
        self._clock = clock

    def ask(self, n: int) -> list[Proposal]:
        self._clock.sleep(n)
        return super().ask(n)


def test_the_first_candidate_does_not_wait_for_the_thoughts_about_all_others() -> None:
    answers: queue.SimpleQueue[Proposals | BaseException] = queue.SimpleQueue()
    clock = ManualClock()
    thread = TunerThread(Slow(clock), report=answers.put, clock=clock)
    thread.start()
    for _ in range(3):
        thread.ask(6)
        answer = answers.get(timeout=SECONDS)
        assert isinstance(answer, Proposals)
        assert len(answer.proposals) == 1
    thread.close()


def test_what_breaks_the_tuner_is_told_with_the_answer() -> None:
    answers: queue.SimpleQueue[Proposals | BaseException] = queue.SimpleQueue()
    thread = TunerThread(Heard(1), report=answers.put, clock=SystemClock())
    thread.start()
    thread.tell(1, trial_of({"nothing": 1}, cycles=1))
    thread.ask(1)
    assert isinstance(answers.get(timeout=SECONDS), Proposals), "nothing was to be known yet"
    thread.ask(1)
    assert isinstance(answers.get(timeout=SECONDS), KeyError)
    thread.close()
