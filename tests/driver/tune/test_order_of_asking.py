"""A folder's search goes on in the order in which it began."""

from __future__ import annotations

from pathlib import Path

from kit.search.stand_ins import toy_task
from tilefarm.measurement import Status, Trial

from driver.tune.continued import LOOKAHEAD, Continued, continued
from tuner.lookahead import USUAL
from tuner.session import Proposal
from tuner.trial_store import TrialPosition, TrialStore

TASKS = {task.name: task for task in (toy_task(1, 720), toy_task(2, 720))}


def end_of(proposal: Proposal) -> Trial:
    task = TASKS[proposal.task]
    return Trial(
        workload=task.digest,
        trace=task.trace(proposal.point).digest,
        point=task.choice(proposal.point),
        status=Status.OK,
        cycles=1000 + 720 // proposal.point["inner"],
    )


def searched(folder: Path, trials: int, lookahead: int | None = None) -> Continued:
    """One session, to its end; what it measured is in the folder."""
    folder.mkdir(exist_ok=True)
    with TrialStore(folder / "records.sqlite") as store:
        earlier = continued(
            TASKS, store, trials=trials, proposer="guided", seed=1, lookahead=lookahead
        )
        session, run = earlier.session, f"to {trials}"
        store.begin_run(run, {LOOKAHEAD: session.lookahead.most}, begun=float(trials))
        out: list[Proposal] = []
        while asked := (session.ask(1) or out):
            if asked is not out:
                out += asked
                continue
            ended = out.pop(0)
            store.insert(end_of(ended), run=run, place=TrialPosition(earlier.search, ended.number))
            session.tell(ended.number, end_of(ended))
        return earlier


def order_in(folder: Path) -> list[object]:
    """What was asked for, in order."""
    with TrialStore(folder / "records.sqlite", read_only=True) as store:
        return [(trial.workload, trial.trace) for trial in store.trials()]


def test_a_folder_is_searched_on_as_far_ahead_as_before(tmp_path: Path) -> None:
    assert not searched(tmp_path / "twice", 36, lookahead=5).is_another
    again = searched(tmp_path / "twice", 50)
    assert (again.session.lookahead.most, again.is_another) == (5, False)
    searched(tmp_path / "once", 50, lookahead=5)
    assert order_in(tmp_path / "twice") == order_in(tmp_path / "once")
    assert len(order_in(tmp_path / "once")) == 50


def test_a_fresh_one_as_far_as_everywhere(tmp_path: Path) -> None:
    assert searched(tmp_path, 36).session.lookahead == USUAL


def test_another_lookahead_asks_in_another_order_and_for_nothing_twice(tmp_path: Path) -> None:
    searched(tmp_path, 36, lookahead=20)
    another = searched(tmp_path, 50, lookahead=2)
    assert (another.session.lookahead.most, another.is_another, another.search) == (2, True, 2)
    assert len(set(order_in(tmp_path))) == 50
    assert searched(tmp_path, 52).search == 2, "which it keeps"
