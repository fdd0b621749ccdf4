"""One runner child: a process that loads one artifact and can be killed at any time."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.measurement import RunJob
from tilefarm.target import Target

from device_server.library.native import hardware_words
from device_server.runner.frames import (
    Reply,
    configure_request,
    load_request,
    read_reply,
    run_request,
)

_REAP_SECONDS: Final = 5.0
_STDERR_TAIL_NBYTES: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerLimits:
    """What one child may use.

    `memory_nbytes` is address space, the accelerator's buffers included; `log_nbytes` what it may
    write to its standard error; `start_seconds` bounds starting and, separately, loading.
    `threads` share the work of kernels that are made for it, see `compile_worker`.
    """

    memory_nbytes: int = 2 << 30
    log_nbytes: int = 64 << 10
    start_seconds: float = 10.0
    threads: int = 1


class ChildGone(Exception):
    """The connection ended: the child is dead or about to be."""


class ChildSilent(Exception):
    """The child did not reply in time."""


class RunnerChild:
    """A started child and the connection to it. Calls block at most as long as they say.

    Args:
        library: the VTA library that it loads; executable: `vta-runner`.

    Raises:
        OSError: the executable cannot be started.
    """

    def __init__(self, executable: Path, library: Path, limits: RunnerLimits) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._log = os.memfd_create("vta-runner-stderr", os.MFD_CLOEXEC)
        try:
            self._process = subprocess.Popen(
                _command(executable, theirs.fileno(), library, limits),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._log,
                env={"LIBC_FATAL_STDERR_": "1"},
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            self._socket.close()
            os.close(self._log)
            raise
        finally:
            theirs.close()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def hello(self, within_seconds: float) -> Reply:
        """The first reply, which comes by itself."""
        return self._reply(within_seconds)

    def configure(self, target: Target, within_seconds: float) -> Reply:
        self._send(configure_request(hardware_words(target)))
        return self._reply(within_seconds)

    def load(self, artifact: Path, within_seconds: float) -> Reply:
        self._send(load_request(str(artifact)))
        return self._reply(within_seconds)

    def run(self, job: RunJob, descriptors: Sequence[int], within_seconds: float) -> Reply:
        """Run the job; descriptors as `run_request` says. CPU time is bounded as well."""
        self._bound_cpu_seconds(within_seconds)
        self._send(run_request(job), descriptors)
        return self._reply(within_seconds)

    def last_words(self) -> str:
        """The end of what the child wrote to its standard error."""
        length = os.lseek(self._log, 0, os.SEEK_END)
        tail = os.pread(self._log, _STDERR_TAIL_NBYTES, max(0, length - _STDERR_TAIL_NBYTES))
        return tail.decode(errors="replace").strip()

    def wait(self) -> int:
        """The exit status of a child that is dying by itself: negative for a signal.

        A child that takes too long to die is killed.
        """
        try:
            return self._process.wait(_REAP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def close(self) -> None:
        """Kill the child and let go of everything. May be called again."""
        if self._socket.fileno() < 0:
            return
        self._process.kill()
        self._process.wait()
        self._socket.close()
        os.close(self._log)

    def _send(self, frame: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send a request. What a child said before it died is left for the reply to find."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sent = socket.send_fds(self._socket, [frame], list(descriptors)) if descriptors else 0
            if sent < len(frame):
                self._socket.sendall(frame[sent:])

    def _reply(self, within_seconds: float) -> Reply:
        return read_reply(_Incoming(self._socket, time.monotonic() + within_seconds))

    def _bound_cpu_seconds(self, budget_seconds: float) -> None:
        """A net below the wall-clock limit: the kernel signals a child whose parent forgot it."""
        # The clock of another process's CPU time, as clock_getcpuclockid makes it.
        with contextlib.suppress(OSError):
            used_seconds = time.clock_gettime((~self._process.pid << 3) | 2)
            soft = math.ceil(used_seconds + budget_seconds) + 1
            resource.prlimit(self._process.pid, resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


class _Incoming:
    """Bytes from the child until a deadline."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline

    def take(self, count: int) -> bytes:
        chunks: list[bytes] = []
        while count > 0:
            chunk = self._receive(min(count, 1 << 20))
            chunks.append(chunk)
            count -= len(chunk)
        return b"".join(chunks)

    def _receive(self, count: int) -> bytes:
        left_seconds = self._deadline - time.monotonic()
        if left_seconds <= 0:
            raise ChildSilent
        self._connection.settimeout(left_seconds)
        try:
            chunk = self._connection.recv(count)
        except TimeoutError:
            raise ChildSilent from None
        except ConnectionResetError:
            raise ChildGone from None
        finally:
            self._connection.settimeout(None)
        if not chunk:
            raise ChildGone
        return chunk


def _command(executable: Path, descriptor: int, library: Path, limits: RunnerLimits) -> list[str]:
    return [
        str(executable),
        str(descriptor),
        str(library),
        str(limits.memory_nbytes),
        str(limits.log_nbytes),
        str(limits.threads),
    ]
