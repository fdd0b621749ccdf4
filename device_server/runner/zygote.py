"""The process that runner children are copies of: its library is loaded and configured once."""

from __future__ import annotations

import math
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.closing import Closing
from tilefarm.errors import InfraError
from tilefarm.target import Target

from device_server.runner.accelerator import AcceleratorProcess
from device_server.runner.arena import arena
from device_server.runner.child import RunnerChild
from device_server.runner.connection import Connection
from device_server.runner.frames import (
    Reply,
    Request,
    Started,
    configure_request,
    spawn_accelerator_request,
    spawn_request,
)
from device_server.runner.last_words import LastWords
from device_server.vta.library.native import hardware_words

_ENVIRONMENT: Final = {"LIBC_FATAL_STDERR_": "1", "LD_BIND_NOW": "1"}
"""Last words go to where they are read; symbols are resolved before children are made, for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerLimits:
    """What one child may use.

    `memory_nbytes` is address space, the accelerator's buffers included, and how far these may go
    (a kernel may have as much again in memory, but not in buffers); `log_nbytes` what it may
    write to its standard error; `start_seconds` bounds starting and, separately, loading;
    `computing_seconds` is processor time, by thread, of all its runs together. `threads` share the
    work of kernels that are made for it, see `compile_worker`.
    """

    memory_nbytes: int = 2 << 30
    log_nbytes: int = 64 << 10
    start_seconds: float = 10.0
    computing_seconds: int = 4 * 3600
    threads: int = 1


class Zygote(Closing):
    """A started `vta-runner`. It dies with the thread that starts it, and so do its children.

    Args:
        library: the VTA library that it loads; executable: `vta-runner`.
        environment: variables for the library. No other is passed on.

    Raises:
        OSError: the executable cannot be started.
    """

    def __init__(
        self,
        executable: Path,
        library: Path,
        limits: RunnerLimits,
        environment: Mapping[str, str],
    ) -> None:
        self.connection = Connection()
        self._log = LastWords()
        self._threads = limits.threads
        self._memory_nbytes = limits.memory_nbytes
        theirs = self.connection.theirs
        try:
            self.process = subprocess.Popen(
                _command(executable, theirs.fileno(), library, limits),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._log.descriptor,
                env={**environment, **_ENVIRONMENT},
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            self.connection.close()
            self._log.close()
            raise
        theirs.close()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def hello(self, within_seconds: float) -> Reply:
        """The first reply, which comes by itself."""
        return self.connection.reply(within_seconds)

    def configure(self, target: Target, within_seconds: float) -> Reply:
        return self.connection.ask(configure_request(hardware_words(target)), within_seconds)

    def accelerator(self, within_seconds: float) -> AcceleratorProcess:
        """A new process that plays the accelerator; of a library that can be apart.

        Raises:
            InfraError: there can be none.
            ChildGone, ChildSilent: the zygote is dead, or as good as.
        """
        with ExitStack() as owned:
            connection = owned.enter_context(Connection())
            self.connection.send(spawn_accelerator_request(connection.theirs.fileno()))
            connection.theirs.close()
            accelerator = AcceleratorProcess(self._started(within_seconds), connection)
            owned.pop_all()
        return accelerator

    def spawn(
        self,
        within_seconds: float,
        first: Sequence[Request] = (),
        accelerator: AcceleratorProcess | None = None,
    ) -> RunnerChild:
        """A new child, which finds its `first` requests as soon as it lives.

        Args:
            accelerator: it has that one from now on, and nobody else has it; None where the library
                in the child is its accelerator.

        Raises:
            InfraError: there can be none.
            ChildGone, ChildSilent: the zygote is dead, or as good as.
        """
        begin = time.monotonic()
        with ExitStack() as owned:
            connection = owned.enter_context(Connection())
            log = owned.enter_context(LastWords())
            with ExitStack() as lent:
                apart = None if accelerator is None else lent.enter_context(self._met(accelerator))
                theirs = connection.theirs.fileno()
                self.connection.send(spawn_request(theirs, log.descriptor, apart))
            connection.theirs.close()
            for request in first:
                connection.send(request)
            pid = self._started(within_seconds)
            owned.pop_all()
        return RunnerChild(
            pid,
            connection,
            log,
            accelerator=accelerator,
            threads=self._threads,
            asked_seconds=begin,
        )

    @contextmanager
    def _met(self, accelerator: AcceleratorProcess) -> Iterator[tuple[int, int]]:
        """A socket to an accelerator, which has its other side, and the memory of both sides."""
        ours, its = socket.socketpair()
        with ours, its, arena(self._memory_nbytes) as memory:
            accelerator.serve(its.fileno(), memory)
            yield ours.fileno(), memory

    def _started(self, within_seconds: float) -> int:
        """The number of the process that was asked for last."""
        reply = self.connection.reply(within_seconds)
        if not isinstance(reply, Started):
            raise InfraError(f"the runner starts no process: {reply}")
        return reply.pid

    def last_words(self) -> str:
        """The end of what it wrote to its standard error."""
        return self._log.text()

    def close(self) -> None:
        """Kill it and let go of everything; its children go on. May be called again."""
        self.process.kill()
        self.process.wait()
        self.connection.close()
        self._log.close()


def _command(executable: Path, descriptor: int, library: Path, limits: RunnerLimits) -> list[str]:
    return [
        str(executable),
        str(descriptor),
        str(library),
        str(limits.memory_nbytes),
        str(limits.log_nbytes),
        str(math.ceil(limits.start_seconds)),
        str(limits.computing_seconds * limits.threads),
        str(limits.threads),
    ]
