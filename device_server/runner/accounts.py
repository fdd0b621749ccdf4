"""What an accelerator's account of a run says of its calls, once it is known to be one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Final

from tilefarm.measurement import Counters, RunJob, Status, TimelineEvent
from tilefarm.plural import plural

from device_server.runner.frames import Account
from device_server.runner.verdicts import RunProblem, refusal

_HINT: Final = "try: leave the runtime's own functions (tilefarm_vta_*) and its sockets alone"


@dataclass(frozen=True, slots=True)
class Counted:
    """What the calls of every sample took.

    `counters` are those of the call with the most cycles. Cycles do not depend on data, so all
    calls take the same; what a kernel moves from one of its calls into another costs it more.
    """

    counters: Counters
    sample_cycles: tuple[int, ...]
    timeline: tuple[TimelineEvent, ...]


def counted(job: RunJob, account: Account) -> Counted | RunProblem:
    """The account of a run of every sample, each once, and of nothing else.

    A kernel may ask the accelerator for whatever it likes, but then there are more calls than were
    made, or streams outside of calls, and all that it did is a part of one of them.
    """
    if problem := _not_of(job.samples, job, account):
        return problem
    each = list(_counters(account))
    return Counted(
        counters=max(each, key=lambda counters: counters.cycles),
        sample_cycles=tuple(counters.cycles for counters in each),
        timeline=account.timeline,
    )


def profiled(job: RunJob, account: Account) -> tuple[int, ...] | RunProblem:
    """The cycles of each of a profile's calls, which were made last in a run that times a job."""
    calls = job.samples + job.repeats + len(job.profile)
    if problem := _not_of(calls, job, account):
        return problem
    first = sum(entry.calls for entry in account.calls) - len(job.profile)
    return tuple(counters.cycles for counters in islice(_counters(account), first, None))


def _not_of(calls: int, job: RunJob, account: Account) -> RunProblem | None:
    """Why it cannot be the account of so many calls, or of more where the clock decides."""
    if account.failed is not None:
        return refusal(account.failed)
    found = sum(entry.calls for entry in account.calls)
    if found == calls or (found > calls and job.precision is not None):
        return None
    why = f"the accelerator was told of {plural(found, 'call')}, but {calls} were made; {_HINT}"
    return RunProblem(Status.RUN_CRASH, why)


def _counters(account: Account) -> Iterator[Counters]:
    for entry in account.calls:
        yield from repeat(entry.each, entry.calls)
