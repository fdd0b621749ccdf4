"""A child process of ours that answers over pipes, in a session of its own.

Ctrl-C does not reach it, nothing is forked but to execute at once, and it ends by itself when the
other ends of its pipes are gone.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from tilefarm.interpreter import python_command

from driver.processes import kill_descendants

_REAPER: Final = "driver.farm.compiling.orphan_reaper"
_END_SECONDS: Final = 5.0


class PipeChild:
    """`python -m module FDS words…`, where FDS are the pipes' far ends.

    Args:
        module: must begin its `main` with `far_ends`.
        pipes: how many.
        log: gets what it prints, appended.
        kept: below a reaper (`orphan_reaper.py`), as it starts processes that may outlive it.
    """

    def __init__(
        self, module: str, words: Sequence[str], *, pipes: int, log: Path, kept: bool = False
    ) -> None:
        pairs = [socket.socketpair() for _ in range(pipes)]
        ends = [theirs.fileno() for _, theirs in pairs]
        numbers = ",".join(map(str, ends))
        command = python_command("-m", module, numbers, *words)
        self._life: socket.socket | None = None
        with ExitStack() as theirs:
            for _, end in pairs:
                theirs.enter_context(end)
            if kept:
                self._life, end = socket.socketpair()
                ends.append(theirs.enter_context(end).fileno())
                command = python_command("-m", _REAPER, str(end.fileno()), numbers, *command)
            with log.open("ab") as output:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=ends,
                    start_new_session=True,
                )
        self.pipes = [Connection(ours.detach()) for ours, _ in pairs]

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """End it and everything below it at once; from any thread."""
        if self._process.returncode is not None:
            return  # Its number may be somebody else's by now.
        if self._life is not None:
            with contextlib.suppress(OSError):  # it has ended already
                self._life.shutdown(socket.SHUT_RDWR)  # the reaper ends them all
        else:
            self._kill_now()

    def _kill_now(self) -> None:
        kill_descendants(self._process.pid)
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def close(self) -> int:
        """End it, and give its exit code; negative for a signal."""
        for pipe in self.pipes:
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            return self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill_now()
            return self._process.wait()
        finally:
            if self._life is not None:
                self._life.close()


def offer(pipe: Connection, count: int) -> list[Connection]:
    """In the child: so many more pipes; the other side of this one gets their ends by `accept`."""
    ours: list[Connection] = []
    with socket.socket(fileno=os.dup(pipe.fileno())) as channel:
        for _ in range(count):
            near, far = socket.socketpair()
            socket.send_fds(channel, [b"."], [far.fileno()])
            far.close()
            ours.append(Connection(near.detach()))
    return ours


def accept(pipe: Connection, count: int) -> list[Connection]:
    """The ends that the other side of a pipe has offered.

    Raises:
        EOFError: it is gone.
    """
    ends: list[Connection] = []
    with socket.socket(fileno=os.dup(pipe.fileno())) as channel:
        for _ in range(count):
            _, found, _, _ = socket.recv_fds(channel, 1, 1)
            if not found:
                raise EOFError
            ends.append(Connection(found[0]))
    return ends


def far_ends(argument: str) -> list[Connection]:
    """In the child: the pipes that the first argument names."""
    connections = []
    for number in map(int, argument.split(",")):
        os.set_inheritable(number, False)
        connections.append(Connection(number))
    return connections
