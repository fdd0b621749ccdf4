"""The request to stop a search, which a signal handler may make."""

from __future__ import annotations

from collections.abc import Callable


class StopToken:
    """Requested once and for all; whoever is connected hears it at once."""

    def __init__(self) -> None:
        self._hear: Callable[[], None] | None = None
        self.is_requested = False

    def request_stop(self) -> bool:
        """Ask the search to stop; False when there is none to hear it."""
        self.is_requested = True
        if self._hear is None:
            return False
        self._hear()
        return True

    def connect(self, hear: Callable[[], None] | None) -> None:
        """Who hears it from now on; told at once when it was requested before.

        `hear` is called from a signal handler: it may put into a `SimpleQueue`, and little else.
        """
        self._hear = hear
        if self.is_requested and hear is not None:
            hear()
