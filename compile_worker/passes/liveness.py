"""When buffers are alive: the accesses of a function in one line, and where each is born and dies.

    alloc a: alloc b:
      for i: a[i] = x[i]              0   gen a
      for j: b[j] = a[j] + 1          1   gen b, kill a
      for k: out[k] = b[k]            2   kill b

What happens in a loop inside a buffer's home may happen again: a buffer that is touched there lives
as long as the loop does. A buffer whose home is in the loop begins anew in every iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compile_worker.ir.expr import Buffer, Load
from compile_worker.ir.nests import Loops
from compile_worker.ir.stmt import Alloc, For, If, Seq, Stmt, Store
from compile_worker.ir.visit import find, mentioned


@dataclass(slots=True)
class Positions:
    """Positions of all accesses in a piece of the program, both ends included."""

    first: int
    last: int = -1

    def __contains__(self, other: Positions) -> bool:
        return self.first <= other.first and other.last <= self.last


@dataclass(frozen=True, slots=True)
class Touch:
    """One statement that reads or writes memory.

    Attributes:
        position: its place in the line.
        loops: around it, outermost first, and `spans` of each of them.
        reads, writes: buffers; what no Store does counts as both.
    """

    position: int
    stmt: Stmt
    loops: Loops
    spans: tuple[Positions, ...]
    reads: frozenset[Buffer]
    writes: frozenset[Buffer]


@dataclass(frozen=True, slots=True)
class Home:
    """An allocation: the loops around it by number, and all that happens while it lasts."""

    alloc: Alloc
    loops: Loops
    span: Positions


@dataclass(slots=True)
class Line:
    """The accesses of a function in order, and its allocations, outermost first."""

    touches: list[Touch] = field(default_factory=list)
    homes: list[Home] = field(default_factory=list)

    def life(self, home: Home) -> Positions | None:
        """From the birth of a buffer to its death; None if nothing touches it."""
        buffer, depth = home.alloc.buffer, len(home.loops)
        life: Positions | None = None
        for touch in self.touches[home.span.first : home.span.last + 1]:
            if buffer in touch.reads or buffer in touch.writes:
                at = Positions(touch.position, touch.position)
                around = touch.spans[depth] if len(touch.spans) > depth else at
                first = around.first if life is None else min(life.first, around.first)
                last = around.last if life is None else max(life.last, around.last)
                life = Positions(first, last)
        return life


def line(body: Stmt) -> Line:
    """Every access in program order; both sides of a branch come one after the other."""
    found = Line()
    _visit(body, (), (), found)
    return found


def _visit(stmt: Stmt, loops: Loops, spans: tuple[Positions, ...], found: Line) -> None:
    match stmt:
        case For(body=body):
            span = Positions(len(found.touches))
            _visit(body, (*loops, stmt), (*spans, span), found)
            span.last = len(found.touches) - 1
        case Seq(stmts):
            for each in stmts:
                _visit(each, loops, spans, found)
        case Alloc(body=body):
            span = Positions(len(found.touches))
            found.homes.append(Home(stmt, loops, span))
            _visit(body, loops, spans, found)
            span.last = len(found.touches) - 1
        case If(condition, then, otherwise):
            reads = frozenset(load.buffer for load in find(condition, Load))
            found.touches.append(Touch(len(found.touches), stmt, loops, spans, reads, frozenset()))
            _visit(then, loops, spans, found)
            if otherwise is not None:
                _visit(otherwise, loops, spans, found)
        case Store(buffer, index, value):
            reads = frozenset(load.buffer for part in (*index, value) for load in find(part, Load))
            writes = frozenset((buffer,))
            found.touches.append(Touch(len(found.touches), stmt, loops, spans, reads, writes))
        case _:
            both = frozenset(each for each in mentioned(stmt) if isinstance(each, Buffer))
            found.touches.append(Touch(len(found.touches), stmt, loops, spans, both, both))
