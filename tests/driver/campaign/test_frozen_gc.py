"""The garbage collector during a search: what is old is left alone, what is new is still found.

Most of it in a process of its own, as `conftest.py` has frozen what this one began with.
"""

from __future__ import annotations

import gc
import subprocess
import weakref

from tilefarm.interpreter import python_command

from driver.campaign.frozen_gc import gc_frozen

OLD = """
import gc, weakref
from driver.campaign.frozen_gc import gc_frozen
class Node:
    def __init__(self):
        self.itself = self
"""


class Node:
    """Something that garbage may be made of."""

    def __init__(self) -> None:
        self.itself = self


def holds(script: str) -> None:
    subprocess.run(python_command("-c", OLD + script), check=True)


def test_what_is_there_is_left_alone_and_looked_at_again_afterwards() -> None:
    holds("""
thresholds, frozen, old = gc.get_threshold(), gc.get_freeze_count(), Node()
with gc_frozen():
    assert gc.get_freeze_count() > frozen
    assert gc.get_threshold()[0] > thresholds[0]
    gone = weakref.ref(old)
    del old
    gc.collect()
    assert gone() is not None
assert gc.get_threshold() == thresholds
gc.collect()
assert gone() is None
""")


def test_what_was_left_alone_before_is_afterwards() -> None:
    holds("""
old = Node()
gone = weakref.ref(old)
gc.freeze()
with gc_frozen():
    del old
gc.collect()
assert gone() is not None
""")


def test_other_threads_go_on_making_what_they_make() -> None:
    """A tuple that grows belongs to nobody else: Python ends with a SystemError otherwise."""
    holds("""
import sys, threading
sys.setswitchinterval(1e-6)
ended, failed = threading.Event(), []
def make():
    try:
        while not ended.is_set():
            tuple(each for each in range(200))
    except SystemError as error:
        failed.append(error)
threads = [threading.Thread(target=make) for _ in range(4)]
for each in threads: each.start()
for _ in range(100):
    with gc_frozen():
        pass
ended.set()
for each in threads: each.join()
assert not failed, failed
""")


def test_garbage_of_the_search_itself_is_found() -> None:
    with gc_frozen():
        gone = weakref.ref(Node())
        gc.collect()
        assert gone() is None


def test_who_does_not_collect_at_all_still_does_not() -> None:
    thresholds = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with gc_frozen():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*thresholds)
