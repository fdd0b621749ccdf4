"""Checks that dependence tokens order everything that touches the same memory.

The modules run concurrently, each in its own order; only tokens order one after another. Each
module carries a vector clock: how many instructions of every module are known to be finished when
its next one starts. A token carries the clock of the module that pushed it. Two instructions of
different modules that touch one element, at least one of them writing, must be ordered by these.
(Mattern: Virtual time and global states of distributed systems, 1989.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from compile_worker.ir.evaluate import Array, InterpretError
from compile_worker.ir.printer import show
from compile_worker.ir.stmt import Dma, MicroKernel, Module, Pop, Push

Clock: TypeAlias = Array
"""For each module, how many of its instructions are finished."""

_ROW = {module: row for row, module in enumerate(Module)}


@dataclass(frozen=True, slots=True)
class Footprint:
    """Elements of one memory that an instruction reads or writes."""

    memory: str
    elements: Array


@dataclass(slots=True)
class _History:
    """For each element of a memory, the last instruction of each module that wrote or read it."""

    written: Array = field(default_factory=lambda: np.zeros((64, 3), np.int64))
    read: Array = field(default_factory=lambda: np.zeros((64, 3), np.int64))

    def cover(self, count: int) -> None:
        """Makes room for `count` elements at least."""
        while len(self.written) < count:
            self.written = np.concatenate([self.written, np.zeros_like(self.written)])
            self.read = np.concatenate([self.read, np.zeros_like(self.read)])


@dataclass(slots=True)
class ModuleOrder:
    """The modules' clocks, the tokens under way, and who touched what last.

    `checked` is false for programs that no tokens have been put into yet.
    """

    checked: bool
    _clocks: Array = field(default_factory=lambda: np.zeros((3, 3), np.int64))
    _tokens: dict[tuple[Module, Module], deque[Clock]] = field(default_factory=dict)
    _histories: dict[str, _History] = field(default_factory=dict)

    def push(self, stmt: Push) -> None:
        """The token leaves once everything that `source` was given before is done."""
        queue = self._tokens.setdefault((stmt.source, stmt.sink), deque())
        queue.append(self._clocks[_ROW[stmt.source]].copy())

    def pop(self, stmt: Pop) -> None:
        """The sink knows from now on what the source knew."""
        queue = self._tokens.get((stmt.source, stmt.sink))
        if not queue:
            raise InterpretError(f"{show(stmt)}: waits for a token that nobody has sent")
        clock = self._clocks[_ROW[stmt.sink]]
        np.maximum(clock, queue.popleft(), out=clock)

    def synchronize(self) -> None:
        """Everything is done, and everyone knows."""
        self._clocks[:] = self._clocks.max(axis=0)

    def finish(self) -> None:
        """No token may be left for the next program to find."""
        for (source, sink), queue in self._tokens.items():
            if queue:
                names = f"{source.name.lower()} to {sink.name.lower()}"
                raise InterpretError(f"{len(queue)} tokens from {names} are left at the end")

    def instruction(
        self,
        module: Module,
        reads: Iterable[Footprint],
        writes: Iterable[Footprint],
        stmt: Dma | MicroKernel,
    ) -> None:
        """The next instruction of `module`, which does `stmt`."""
        if not self.checked:
            return
        row = _ROW[module]
        clock = self._clocks[row]
        clock[row] += 1
        for access in reads:
            history = self._history(access)
            self._expect(history.written, access, row, stmt)
            history.read[access.elements, row] = clock[row]
        for access in writes:
            history = self._history(access)
            self._expect(history.written, access, row, stmt)
            self._expect(history.read, access, row, stmt)
            history.written[access.elements, row] = clock[row]

    def _history(self, access: Footprint) -> _History:
        history = self._histories.setdefault(access.memory, _History())
        history.cover(int(access.elements.max()) + 1)
        return history

    def _expect(self, events: Array, access: Footprint, row: int, stmt: Dma | MicroKernel) -> None:
        unordered = events[access.elements] > self._clocks[row]
        if unordered.any():
            which, other = np.argwhere(unordered)[0]
            module = list(Module)[int(other)].name.lower()
            used = f"{access.memory} {access.elements[which]}"
            raise InterpretError(f"{show(stmt)}: no token orders it after {module}'s use of {used}")
