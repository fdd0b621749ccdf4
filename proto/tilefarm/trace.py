"""A schedule as data: the primitives that made it, with their arguments.

A trace is portable (JSON), replayable (`compile_worker.schedule.replay`) and its digest is the
identity of a candidate's schedule. Programs never travel as pickled IR; traces do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, TypeAlias

from tilefarm.digest import Digest, canonical_json
from tilefarm.documents import decoded

Argument: TypeAlias = "int | str | bool | tuple[Argument, ...]"
_Rows: TypeAlias = tuple[tuple[str, tuple[Argument, ...]], ...]


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

    def __reduce__(self) -> tuple[Callable[[_Rows], Trace], tuple[_Rows]]:
        # Every candidate is pickled on its way to a compiler; rows of plain values are so at once.
        return _trace, (tuple((step.primitive, step.args) for step in self.steps),)

    def to_json(self) -> str:
        return canonical_json([(s.primitive, *s.args) for s in self.steps])

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """The trace that `to_json` wrote.

        Raises:
            ValueError: the text is not a trace.
        """
        rows = decoded(text)
        if not isinstance(rows, list) or not all(
            isinstance(row, list) and row and isinstance(row[0], str) for row in rows
        ):
            raise ValueError("a trace is a list of [primitive, argument, ...]")
        return cls(tuple(Step(row[0], tuple(map(_frozen, row[1:]))) for row in rows))

    def diff(self, other: Trace) -> str:
        """What to change in this trace to get the other one; empty if they are equal.

        Steps are numbered as they are in the trace that has them:

              12 steps alike
            ~ 13 split('conv_w', 7 -> 14)
            - 14 reorder('conv_w_0', 'conv_h')
            + 14 fuse('conv_h', 'conv_w_0')
        """
        return "" if self == other else "\n".join(_changes(self.steps, other.steps))

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))


def _trace(rows: _Rows) -> Trace:
    """The trace of these (primitive, arguments)."""
    return Trace(tuple(Step(primitive, args) for primitive, args in rows))


_FEW: Final = 2
"""Equal steps between changes that a diff writes out; more are counted."""


def _changes(before: Sequence[Step], after: Sequence[Step]) -> Iterator[str]:
    """The lines of a diff."""
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, first, last, other_first, other_last in matcher.get_opcodes():
        old = [*enumerate(before[first:last], first + 1)]
        new = [*enumerate(after[other_first:other_last], other_first + 1)]
        pairs = [*zip(old, new, strict=False)]
        if kind == "equal":
            yield from _alike(old)
        elif len(old) == len(new) and all(_kin(one, other) for (_, one), (_, other) in pairs):
            yield from (f"~ {at:2d} {_altered(one, other)}" for (at, one), (_, other) in pairs)
        else:
            yield from (f"- {at:2d} {step}" for at, step in old)
            yield from (f"+ {at:2d} {step}" for at, step in new)


def _alike(steps: Sequence[tuple[int, Step]]) -> Iterator[str]:
    if len(steps) > _FEW:
        yield f"  {len(steps):2d} steps alike"
    else:
        yield from (f"  {at:2d} {step}" for at, step in steps)


def _kin(one: Step, other: Step) -> bool:
    """Whether two steps do the same to the same thing, with other numbers or names after it."""
    alike = one.primitive == other.primitive and len(one.args) == len(other.args)
    return alike and one.args[:1] == other.args[:1]


def _altered(one: Step, other: Step) -> str:
    """The step with `old -> new` where an argument differs."""
    args = (
        _show(a) if a == b else f"{_show(a)} -> {_show(b)}"
        for a, b in zip(one.args, other.args, strict=True)
    )
    return f"{one.primitive}({', '.join(args)})"


def _show(argument: Argument) -> str:
    if isinstance(argument, tuple):
        return "[" + ", ".join(map(_show, argument)) + "]"
    return repr(argument)


def _frozen(document: object) -> Argument:
    match document:
        case list():
            return tuple(map(_frozen, document))
        case bool() | int() | str():
            return document
        case _:
            raise ValueError(f"a trace cannot hold {document!r}")
