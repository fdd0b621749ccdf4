"""Things that run out, and things that are put off."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from device_server.tracker.deadlines import Deadlines


@dataclass(slots=True, eq=False)
class Thing:
    until: float
    gone: bool = False


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "put off", "remove"]), st.integers(0, 9)), max_size=40
    )
)
def test_what_runs_out_is_told_once_and_nothing_else(steps: list[tuple[str, int]]) -> None:
    deadlines: Deadlines[Thing] = Deadlines()
    living: list[Thing] = []
    for now, (step, number) in enumerate(steps):
        if step == "add":
            living.append(Thing(until=now + number))
            deadlines.add(living[-1])
        elif living and step == "put off":
            thing = living[number % len(living)]
            thing.until = max(thing.until, now + number)
        elif living:
            living.pop(number % len(living)).gone = True
        over = deadlines.over(now)
        assert sorted(map(id, over)) == sorted(id(thing) for thing in living if thing.until <= now)
        for thing in over:
            thing.gone = True
            living.remove(thing)
