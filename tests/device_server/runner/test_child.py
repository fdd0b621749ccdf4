"""The connection to a child that dies faster than it is spoken to."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tilefarm.digest import Digest
from tilefarm.measurement import RunJob

from device_server.runner.child import RunnerChild
from device_server.runner.connection import ChildGone, ChildSilent, Connection
from device_server.runner.frames import MOST_REPLY_NBYTES, Fault, load_request, run_request
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
        child.send(run_request(job, [], file.fileno()))
        reply = child.ran(5.0)
        assert isinstance(reply, Fault)
        assert reply.signal == signal.SIGSEGV
        child.send(load_request(file.fileno()))
        with pytest.raises(ChildGone):
            child.loaded(5.0)


def test_a_child_that_died_without_a_word_is_gone() -> None:
    with dead_child("") as child, pytest.raises(ChildGone):
        child.loaded(5.0)


def test_a_child_is_waited_for_once_and_killed_in_vain_afterwards() -> None:
    with dead_child("raise SystemExit(7)") as child:
        assert not child.alive
        assert child.wait() == 7
        child.close()
        assert child.wait() == 7


def test_an_answer_is_heard_by_who_was_kept_from_listening_until_its_time_was_over() -> None:
    with dead_child(LAST_WORDS) as child:
        assert isinstance(child.loaded(-1.0), Fault)
        with pytest.raises(ChildGone):
            child.loaded(-1.0)
    with Connection() as connection:
        connection.theirs.sendall(b"\4\0")
        with pytest.raises(ChildSilent):
            connection.reply(-1.0)


def test_who_speaks_without_end_is_silent_when_its_time_is_over() -> None:
    with Connection() as connection, ThreadPoolExecutor(1) as beside:
        theirs = connection.theirs
        beside.submit(lambda: dribble(theirs))
        try:
            with pytest.raises(ChildSilent):
                connection.reply(0.3)
        finally:
            theirs.shutdown(socket.SHUT_RDWR)


def dribble(to: socket.socket) -> None:
    """The longest reply, in pieces that never stop coming."""
    with contextlib.suppress(OSError):
        to.sendall(MOST_REPLY_NBYTES.to_bytes(4, "little"))
        while True:
            to.sendall(b"\0" * 16)
            time.sleep(0.01)
