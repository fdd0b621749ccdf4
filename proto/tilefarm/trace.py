"""A schedule as data: the primitives that made it, with their arguments.

A trace is portable (JSON), replayable (`compile_worker.schedule.replay`) and its digest is the
identity of a candidate's schedule. Programs never travel as pickled IR; traces do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypeAlias

from tilefarm.digest import Digest, canonical_json

Argument: TypeAlias = "int | str | bool | tuple[Argument, ...]"


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a schedule primitive. Loops, blocks and buffers are named by strings."""

    primitive: str
    args: tuple[Argument, ...] = ()

    def __str__(self) -> str:
        return f"{self.primitive}({', '.join(map(_show, self.args))})"


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps of a schedule in the order in which they were taken."""

    steps: tuple[Step, ...] = ()

    @property
    def digest(self) -> Digest:
        return Digest.of(self.to_json().encode())

    def to_json(self) -> str:
        return canonical_json([[s.primitive, *map(_plain, s.args)] for s in self.steps])

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """The trace that `to_json` wrote.

        Raises:
            ValueError: the text is not a trace.
        """
        rows = json.loads(text)
        if not isinstance(rows, list) or not all(
            isinstance(row, list) and row and isinstance(row[0], str) for row in rows
        ):
            raise ValueError("a trace is a list of [primitive, argument, ...]")
        return cls(tuple(Step(row[0], tuple(map(_frozen, row[1:]))) for row in rows))

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))


def _show(argument: Argument) -> str:
    if isinstance(argument, tuple):
        return "[" + ", ".join(map(_show, argument)) + "]"
    return repr(argument)


def _plain(argument: Argument) -> object:
    return [_plain(a) for a in argument] if isinstance(argument, tuple) else argument


def _frozen(document: object) -> Argument:
    match document:
        case list():
            return tuple(map(_frozen, document))
        case bool() | int() | str():
            return document
        case _:
            raise ValueError(f"a trace cannot hold {document!r}")
