"""Threads that go on until the end of a context."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Self

from tilefarm.closing import Closing


@dataclass(slots=True)
class Throng(Closing):
    """One thread for each of `bodies`, which return soon after `_ended` is set."""

    _ended: threading.Event = field(default_factory=threading.Event, kw_only=True)
    _threads: list[threading.Thread] = field(default_factory=list, kw_only=True)

    @abstractmethod
    def bodies(self) -> Iterable[Callable[[], None]]: ...

    def __enter__(self) -> Self:
        self._threads += [threading.Thread(target=body) for body in self.bodies()]
        for thread in self._threads:
            thread.start()
        return self

    def close(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
