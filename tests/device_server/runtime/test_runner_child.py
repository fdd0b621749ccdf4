"""The connection to a child that dies faster than it is spoken to."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tilefarm.digest import Digest
from tilefarm.measurement import RunJob

from device_server.runner.child import RunnerChild
from device_server.runner.connection import ChildGone, Connection
from device_server.runner.frames import Fault
from device_server.runner.last_words import LastWords

LAST_WORDS = """
import os, struct, sys
words = struct.pack("<BiiQQiB", 4, 11, 1, 16, 2**64 - 1, -1, 0)
os.write(int(sys.argv[1]), struct.pack("<I", len(words)) + words)
"""


@contextmanager
def dead_child(script: str) -> Iterator[RunnerChild]:
    connection = Connection()
    theirs = connection.theirs.fileno()
    os.set_inheritable(theirs, True)
    argv = [sys.executable, "-I", "-c", script, str(theirs)]
    pid = os.posix_spawn(sys.executable, argv, {})
    connection.theirs.close()
    with closing(RunnerChild(pid, connection, LastWords())) as child:
        child.wait()
        yield child


def test_the_last_words_of_a_child_that_is_dead_already_are_heard(tmp_path: Path) -> None:
    job = RunJob(artifact=Digest.of(b""), entry="entry", buffers=())
    (tmp_path / "content").touch()
    with dead_child(LAST_WORDS) as child, (tmp_path / "content").open() as file:
        reply = child.run(job, [file.fileno()], 5.0)
        assert isinstance(reply, Fault)
        assert reply.signal == signal.SIGSEGV
        with pytest.raises(ChildGone):
            child.load(tmp_path, 5.0)


def test_a_child_that_died_without_a_word_is_gone(tmp_path: Path) -> None:
    with dead_child("") as child, pytest.raises(ChildGone):
        child.load(tmp_path, 5.0)


def test_a_child_is_waited_for_once_and_killed_in_vain_afterwards() -> None:
    with dead_child("raise SystemExit(7)") as child:
        assert not child.alive
        assert child.wait() == 7
        child.close()
        assert child.wait() == 7
