"""How long a user's Python may take: one that loops for ever ends, where it is run.

    with patience(10):
        function()               raises OverdueError in the middle of it, ten seconds later

The system's alarm clock does it, which there is for the main thread only; in other threads whoever
started them waits. A call into C that never returns is not ended.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class OverdueError(BaseException):
    """Not an `Exception`: what is ended shall not catch it with everything else."""


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Ends what is inside after so many seconds of wall time.

    Raises:
        OverdueError: it took longer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise OverdueError(f"not done after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    earlier, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, earlier)
        signal.signal(signal.SIGALRM, before)
