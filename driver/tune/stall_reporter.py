"""A run that has said nothing for a while says what it waits for, whatever it is doing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from tilefarm.clock import Clock
from tilefarm.closing import Closing
from tilefarm.threads import Breakage, start_thread

QUIET_SECONDS: Final = 8.0
"""Nobody shall wonder for ten seconds."""

LOOK_SECONDS: Final = 0.5


class StallReporter(Closing):
    """Breaks the silence from a thread of its own, so a run that is stuck speaks as well.

    A context manager. What is waited for is told by the innermost block of `waiting`.

    Args:
        say: tells it; what it tells counts as said.
    """

    def __init__(self, say: Callable[[str], None], *, clock: Clock) -> None:
        self._say = say
        self._clock = clock
        self._heard_seconds = clock.seconds()
        self._reasons: list[Callable[[], str]] = []
        self._closing = threading.Event()
        self._broken = Breakage()
        self._thread = start_thread(self._main, name="silence", broken=self._broken)

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def heard(self) -> None:
        """Something was said; raises what the thread died of."""
        self._broken.check()
        self._heard_seconds = self._clock.seconds()

    @contextmanager
    def waiting(self, reason: Callable[[], str]) -> Iterator[None]:
        """Within, it is this that is waited for; it may be asked on any thread."""
        self._reasons.append(reason)
        try:
            yield
        finally:
            self._reasons.remove(reason)

    def look(self) -> None:
        """Speak if it was quiet for too long."""
        if self._clock.seconds() - self._heard_seconds < QUIET_SECONDS:
            return
        reasons = self._reasons[-1:]
        self.heard()
        self._say("; ".join([f"quiet for {QUIET_SECONDS:g} s", *(reason() for reason in reasons)]))

    def _main(self) -> None:
        while not self._closing.wait(LOOK_SECONDS):
            self.look()
