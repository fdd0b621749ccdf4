"""How long a compile may take, so that none is given up only because its machine is busy.

it computes                                  its processor time counts
it sleeps                                    so does the time in which it does nothing else
it is stopped, or waits for a processor      neither, but not for ever: nobody knows its fault
nobody looks, as all here are stopped        that is a moment
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Final

from tilefarm.process_state import ASLEEP, process_state

_LOOK_SECONDS: Final = 0.2
_LONGEST_LOOK_SECONDS: Final = 0.5
PATIENCE: Final = 20.0
"""So many times the limit, on the clock: a machine that gives less of a processor is not well."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """Why nobody waits any longer, and whether the process has used its time up itself."""

    why: str
    is_its_own: bool


def overdue(pipe: Connection, pid: int, seconds: float) -> Overdue | None:
    """Wait until a process has answered, or ended, which is None; or its time is up.

    Args:
        pipe: from it.
        pid: a child that was not waited for.
        seconds: that it may compute, or sleep on end.
    """
    before = spent = process_state(pid).seconds
    looked = time.monotonic()
    waited = slept = 0.0
    while not pipe.poll(min(seconds, _LOOK_SECONDS)):
        now, earlier = time.monotonic(), spent
        passed, looked = min(now - looked, _LONGEST_LOOK_SECONDS), now
        state = process_state(pid)
        spent = state.seconds
        waited += passed
        slept = slept + passed if state.does == ASLEEP and spent == earlier else 0.0
        if spent - before >= seconds:
            return Overdue(f"no answer within {seconds:g} s of processor time", True)
        if slept >= seconds:
            return Overdue(f"no answer, and asleep for {seconds:g} s", True)
        if waited >= PATIENCE * seconds:
            got = f"{spent - before:.1f} s of a processor in {waited:.0f} s"
            return Overdue(f"it got {got}", False)
    return None
