"""The program of a process that keeps another one: nothing below it outlives it, nor its owner.

What the kept one starts may start others, leave them, and die at any moment: whoever has lost a
parent becomes the reaper's child. It ends them all when its owner lets go of a pipe, as the kernel
does for one that was killed, and when the kept one ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Final

from driver.processes import descendants

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_ENDINGS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_LOOK_SECONDS: Final = 0.02


def main(life: str, passed: str, *command: str) -> int:
    """Keep a process until it ends or its owner lets go; its exit code.

    Args:
        life: the descriptor of a pipe; the owner has the other end.
        passed: descriptors for the kept process alone, with commas.
        command: of the process.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    owner, woken = int(life), _woken_by_signals()
    far = [int(number) for number in passed.split(",")]
    kept = subprocess.Popen(
        command,
        pass_fds=far,
        # If somebody kills the reaper, the kept one goes with it.
        preexec_fn=dying_with_its_thread(os.getpid()),
    )
    for number in far:
        os.close(number)
    code: int | None = None
    while code is None:
        ready, _, _ = select.select([owner, woken], [], [])
        if owner in ready:
            break
        if any(number in _ENDINGS for number in os.read(woken, 4096)):
            break
        code = kept.returncode = _buried().get(kept.pid)
    _end_all()
    return code or 0


def dying_with_its_thread(owner: int) -> Callable[[], None]:
    """What a process does before it begins, so that it is killed when the thread that starts it
    ends, and so with that one's process `owner`, however and how soon that ends.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def die_with_it() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != owner:  # it had ended before that was said
            os.kill(os.getpid(), signal.SIGKILL)

    return die_with_it


def _woken_by_signals() -> int:
    """A descriptor that gives the numbers of the signals that come: of ended children, too."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, *_ENDINGS):
        signal.signal(number, lambda *_: None)
    return reading


def _buried() -> dict[int, int]:
    """The exit codes of the children that have ended; negative for a signal."""
    ended: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = os.waitstatus_to_exitcode(found[1])
    return ended


def _end_all() -> None:
    """Kill everything below until there is nothing: who is orphaned by that comes to be below.

    A look at all processes misses one whose parent ends meanwhile; whether there is a child, the
    system knows.
    """
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_LOOK_SECONDS)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
