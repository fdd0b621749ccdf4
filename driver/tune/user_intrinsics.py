"""What a run says of users' intrinsics: where they can be used, and whether they answer right.

Answers of all schedules are compared with what the operator's script makes in numpy, bit for bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

from tilefarm.measurement import Status
from tilefarm.plural import plural

from compile_worker.ir.tile_intrinsics import TileIntrinsic
from compile_worker.machines.cpu.space.script_intrinsics import variable
from compile_worker.machines.cpu.space.script_rules import with_rules_of_users
from driver.campaign.measuring import Task
from tuner.trial_store import TrialStore


def where_used(tasks: Collection[Task]) -> Iterator[str]:
    """A line for each intrinsic: of how many workloads it can do the sums."""
    for mine in _intrinsics():
        found = sum(variable(mine) in task.tunables for task in tasks)
        why = "" if found else ": `tilefarm show` says why"
        yield f"{mine.label} can do sums of {found} of {plural(len(tasks), 'workload')}{why}"


def failures(tasks: Collection[Task], store: TrialStore) -> Iterator[str]:
    """A line for each intrinsic with which schedules fail, and how many do without it."""
    trials = [trial for task in tasks for trial in store.trials(task.digest)]
    for mine in _intrinsics():
        using = [trial for trial in trials if dict(trial.point).get(variable(mine))]
        failed = Counter(trial.status for trial in using if trial.status is not Status.OK)
        others = [trial for trial in trials if trial not in using]
        elsewhere = sum(trial.status is not Status.OK for trial in others)
        if failed:
            how = ", ".join(f"{count} end as {status.value}" for status, count in failed.items())
            of, rest = plural(len(using), "schedule"), f"{elsewhere} of {len(others)} without it"
            why = _WHY.get(max(failed, key=failed.__getitem__), "")
            yield f"{mine.label}: of {of} with it {how}; {rest} fail{why}"


_WHY: Final = {
    Status.WRONG_RESULT: ": its instructions may not compute what its loops say",
    Status.COMPILE_CRASH: ": `needs` may not name all that its instructions need",
}


def _intrinsics() -> list[TileIntrinsic]:
    return [rule.intrinsic for rule in with_rules_of_users() if rule.intrinsic is not None]
