"""The one way in which threads are started: none of them dies without somebody hearing of it.

Python prints what a thread raises, and the others wait for it for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeAlias

Broken: TypeAlias = Callable[[Exception], None]
"""Hears, on the thread that dies, what it died of."""


def start_thread(main: Callable[[], object], *, name: str, broken: Broken) -> threading.Thread:
    """A thread that runs `main` as a part of its caller's work; it keeps no process alive.

    Args:
        main: what it does; whatever this raises is a fault of ours.
        name: for people who look at the process.
        broken: must see to it that nobody waits for the thread any more.
    """

    def guarded() -> None:
        try:
            main()
        except Exception as error:
            broken(error)
        except BaseException as end:  # such as `sys.exit` in a library
            died = RuntimeError(f"the thread {name} was ended by {end!r}")
            died.__cause__ = end
            broken(died)

    thread = threading.Thread(target=copy_context().run, args=(guarded,), name=name, daemon=True)
    thread.start()
    return thread


class Breakage:
    """What a thread died of, for those who look at what it leaves; a `Broken`."""

    def __init__(self) -> None:
        self._error: Exception | None = None

    def __call__(self, error: Exception) -> None:
        self._error = self._error or error

    def check(self) -> None:
        """Nothing while the thread is well; raises what it died of."""
        if self._error is not None:
            raise self._error
