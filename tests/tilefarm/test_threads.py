"""What becomes of a thread that dies of what nobody foresaw."""

from __future__ import annotations

import queue
import sys

import pytest
from tilefarm.threads import Breakage, start_thread
from tilefarm.watch.trace_context import TraceContext, current_context, doing


@pytest.mark.parametrize(
    ("dies", "said"), [(lambda: 1 // 0, "division"), (lambda: sys.exit(0), "odd was ended by")]
)
def test_its_death_is_heard(dies: object, said: str) -> None:
    heard: queue.SimpleQueue[Exception] = queue.SimpleQueue()
    assert callable(dies)
    start_thread(dies, name="odd", broken=heard.put).join()
    assert said in str(heard.get_nowait())


def test_it_works_for_what_its_caller_does() -> None:
    seen: list[TraceContext | None] = []
    with doing(TraceContext.of("r1")):
        start_thread(lambda: seen.append(current_context()), name="even", broken=Breakage()).join()
    assert [work.run for work in seen if work] == ["r1"]


def test_one_that_ends_well_breaks_nothing() -> None:
    broken = Breakage()
    start_thread(lambda: None, name="even", broken=broken).join()
    broken.check()


def test_the_first_death_is_kept() -> None:
    broken = Breakage()
    broken(ValueError("first"))
    broken(ValueError("second"))
    with pytest.raises(ValueError, match="first"):
        broken.check()
