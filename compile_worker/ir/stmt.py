"""Statements: loops, blocks and stores, and what they become on the accelerator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from compile_worker.ir.expr import Buffer, Expr, Var
from compile_worker.ir.node import Node, node


@dataclass(frozen=True, slots=True)
class Mark:
    """What a schedule or a pass leaves on a node for a later one, as `{name=value}` in text.

    `ir.annotations` says which there are, and makes and reads them.
    """

    name: str
    value: int | str


class LoopKind(Enum):
    """How the iterations of a loop are executed. They are independent of it in their result."""

    SERIAL = "for"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"


class Stmt(Node):
    """Something that is done."""

    __slots__ = ()


@node
class Store(Stmt):
    """buffer[index] = value"""

    buffer: Buffer
    index: tuple[Expr, ...]
    value: Expr


@node
class Seq(Stmt):
    """Statements one after the other; no Seq directly inside a Seq, none of exactly one."""

    stmts: tuple[Stmt, ...]


NOTHING: Final = Seq(())
"""The statement that does nothing."""


def sequence(stmts: Iterable[Stmt]) -> Stmt:
    """The statements in order, flattened; a single one is itself."""
    flat: list[Stmt] = []
    for stmt in stmts:
        flat.extend(stmt.stmts if isinstance(stmt, Seq) else (stmt,))
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


@node
class For(Stmt):
    """for var in 0:extent"""

    var: Var
    extent: int
    body: Stmt
    kind: LoopKind = LoopKind.SERIAL
    marks: tuple[Mark, ...] = ()


@node
class If(Stmt):
    """Does `then` where the condition holds, `otherwise` (if any) elsewhere."""

    condition: Expr
    then: Stmt
    otherwise: Stmt | None = None


@node
class Block(Stmt):
    """A named piece of work that a schedule refers to: the leaf of a loop nest.

    `init`, if any, stores the neutral element of a reduction and is done before the first `body` of
    the same output element, that is when every reduction loop around is at 0.
    `reductions` names the loop variables that the block reduces over.
    """

    name: str
    body: Stmt
    init: Stmt | None = None
    reductions: tuple[Var, ...] = ()
    marks: tuple[Mark, ...] = ()


@node
class Alloc(Stmt):
    """`buffer` exists while `body` runs; its contents are undefined at first.

    Marks of on-chip buffers are SLOTS, and once their slots are taken in turns COPIES; HOLD; and
    BASE once they are placed. Those of host memory are `align` and `skew`.
    """

    buffer: Buffer
    body: Stmt
    marks: tuple[Mark, ...] = ()


@node
class Ref(Node):
    """A place in a buffer, counted in hardware elements (vectors or tiles of the memory's type)."""

    buffer: Buffer
    element: Expr


@node
class Dma(Stmt):
    """A two-dimensional copy between DRAM and an on-chip buffer: LOAD or STORE of VTA.

    Moves `rows` rows of `columns` elements; the DRAM side advances by `stride` elements a row, the
    on-chip side is dense. A load surrounds the rows with zeros: pad_top, pad_bottom rows and
    pad_left, pad_right columns. `direction` is "load" or "store".
    """

    direction: str
    sram: Ref
    dram: Ref
    rows: Expr
    columns: Expr
    stride: Expr
    pad_top: Expr
    pad_left: Expr
    pad_bottom: Expr
    pad_right: Expr


@node
class HardwareLoop(Node):
    """One of the two loops of a GEMM or ALU instruction: trips, and index steps in elements."""

    extent: int
    dst: int
    src: int
    wgt: int


@node
class MicroOp(Node):
    """Offsets of one micro-op from the operands' base elements."""

    dst: int
    src: int
    wgt: int


@node
class MicroKernel(Stmt):
    """One GEMM or ALU instruction: loops around a list of micro-ops.

    gemm: dst[d] += src[s] * wgt[w]^T, or dst[d] = 0 when `reset`. alu: dst[d] = opcode(dst[d],
    operand) with operand = imm, or src[s] (an accumulator) when imm is None; opcode is "min",
    "max", "add", "shr", "mul"; "shr" by a negative constant, -16 at least, is a shift to the left.
    An `imm` that is an expression is a shift of 0 to 31 that the host
    reads when it queues the instruction. Bases may depend on loop variables only through the slot
    of an n-buffered operand.
    """

    engine: str
    opcode: str
    dst: Ref
    src: Ref | None
    wgt: Ref | None
    loops: tuple[HardwareLoop, ...]
    uops: tuple[MicroOp, ...]
    imm: int | Expr | None = None
    reset: bool = False


class Module(Enum):
    """The accelerator's concurrent modules; values are the runtime's queue numbers."""

    LOAD = 1
    COMPUTE = 2
    STORE = 3


@node
class Push(Stmt):
    """A token from one module to another, once the former has done what it was given before."""

    source: Module
    sink: Module


@node
class Pop(Stmt):
    """The next instruction of `sink` waits for a token from `source`."""

    source: Module
    sink: Module


@node
class Synchronize(Stmt):
    """Runs what was queued on the accelerator and waits for it."""
