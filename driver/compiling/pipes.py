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
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from tilefarm.interpreter import python_command

from driver.processes import kill_descendants

_END_SECONDS: Final = 5.0


class PipeChild:
    """`python -m module FDS words…`, where FDS are the pipes' far ends.

    Args:
        module: must begin its `main` with `far_ends`.
        pipes: how many.
        log: gets what it prints, appended.
    """

    def __init__(self, module: str, words: Sequence[str], *, pipes: int, log: Path) -> None:
        pairs = [socket.socketpair() for _ in range(pipes)]
        far = [theirs.fileno() for _, theirs in pairs]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                python_command("-m", module, ",".join(map(str, far)), *words),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=far,
                start_new_session=True,
            )
        for _, theirs in pairs:
            theirs.close()
        self.pipes = [Connection(ours.detach()) for ours, _ in pairs]

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """End it and everything below it at once; from any thread."""
        if self._process.returncode is not None:
            return  # Its number may be somebody else's by now.
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
            self.kill()
            return self._process.wait()


def far_ends(argument: str) -> list[Connection]:
    """In the child: the pipes that the first argument names."""
    connections = []
    for number in map(int, argument.split(",")):
        os.set_inheritable(number, False)
        connections.append(Connection(number))
    return connections
