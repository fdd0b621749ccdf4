"""Text of IR: one statement a line, blocks by indentation, marks in braces. `parser` reads it back.

    func example {operator=conv2d}
    param data: int8[1, 64] dram
    param out: int32[64] dram
    for i in 64
      block out {alu=1}
        out[i] = int32(data[0, i]) + i32(1)

Expressions are Python's, with its precedences. Literals say their type (`i32(1)`) unless they are
indices; `int32(x)` converts. An allocation lasts until the end of the block that it is in; one that
ends earlier has its body indented, after a colon.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final

from tilefarm.dtype import DType

from compile_worker.ir.expr import (
    INDEX,
    Add,
    And,
    Binary,
    Buffer,
    Call,
    Cast,
    Const,
    Div,
    Eq,
    Expr,
    FloorDiv,
    FloorMod,
    Le,
    Load,
    Logical,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Or,
    Select,
    Shr,
    Sub,
    Var,
)
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import (
    NOTHING,
    Alloc,
    Block,
    Dma,
    For,
    HardwareLoop,
    If,
    Mark,
    MicroKernel,
    MicroOp,
    Pop,
    Push,
    Ref,
    Seq,
    Stmt,
    Store,
    Synchronize,
)

INDENT: Final = "  "

LITERALS: Final[Mapping[DType, str]] = {
    DType.BOOL: "b1",
    DType.INT8: "i8",
    DType.UINT8: "u8",
    DType.INT16: "i16",
    DType.INT32: "i32",
    DType.INT64: "i64",
    DType.FLOAT32: "f32",
}
"""How the literals of a type begin. Indices, which are int64, are bare."""


class _Level(IntEnum):
    """Precedences of Python's grammar, loosest first."""

    ANY = 0
    OR = 1
    AND = 2
    COMPARISON = 3
    SHIFT = 4
    SUM = 5
    PRODUCT = 6
    ATOM = 7


_INFIX: Final[Mapping[type[Node], tuple[str, _Level]]] = {
    Or: ("or", _Level.OR),
    And: ("and", _Level.AND),
    Lt: ("<", _Level.COMPARISON),
    Le: ("<=", _Level.COMPARISON),
    Eq: ("==", _Level.COMPARISON),
    Ne: ("!=", _Level.COMPARISON),
    Shr: (">>", _Level.SHIFT),
    Add: ("+", _Level.SUM),
    Sub: ("-", _Level.SUM),
    Mul: ("*", _Level.PRODUCT),
    Div: ("/", _Level.PRODUCT),
    FloorDiv: ("//", _Level.PRODUCT),
    FloorMod: ("%", _Level.PRODUCT),
}

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def show(node: Node) -> str:
    """The text of a function, statement, expression or any other node; no newline at its end."""
    if isinstance(node, Expr):
        return _expr(node, _Level.ANY)
    if isinstance(node, Stmt):
        return "\n".join(_lines(node, 0))
    if isinstance(node, Func):
        return "\n".join(_function(node))
    return _part(node)


def _expr(expr: Expr, level: _Level) -> str:
    """Text of an expression, in parentheses if it binds more loosely than `level`."""
    match expr:
        case Var(name):
            return name
        case Const():
            return _const(expr)
        case Load(buffer, index):
            return _place(buffer, index)
        case Cast(dtype, value):
            return f"{dtype}({show(value)})"
        case Min(left, right):
            return f"min({show(left)}, {show(right)})"
        case Max(left, right):
            return f"max({show(left)}, {show(right)})"
        case Select(condition, then, otherwise):
            return f"select({show(condition)}, {show(then)}, {show(otherwise)})"
        case Call(name, args, dtype):
            return f"{name}[{dtype}]({', '.join(map(show, args))})"
        case Binary() | Logical():
            sign, own = _INFIX[type(expr)]
            first = _Level(own + 1) if own is _Level.COMPARISON else own
            text = f"{_expr(expr.left, first)} {sign} {_expr(expr.right, _Level(own + 1))}"
            return f"({text})" if own < level else text
        case _:
            raise TypeError(f"no text for {type(expr).__name__}")


def _const(const: Const) -> str:
    if const.type is INDEX and type(const.value) is int:
        return repr(const.value)
    return f"{LITERALS[const.type]}({const.value!r})"


def _place(buffer: Buffer, index: tuple[Expr, ...]) -> str:
    return f"{buffer.name}[{', '.join(map(show, index))}]"


def _part(node: Node) -> str:
    match node:
        case Buffer(name, shape, dtype, scope):
            return f"{name}: {dtype}[{', '.join(map(str, shape))}] {scope}"
        case Ref(buffer, element):
            return f"{buffer.name} @ {_expr(element, _Level.ATOM)}"
        case HardwareLoop(extent, dst, src, wgt):
            return f"({extent}, {dst}, {src}, {wgt})"
        case MicroOp(dst, src, wgt):
            return f"({dst}, {src}, {wgt})"
        case _:
            raise TypeError(f"no text for {type(node).__name__}")


def _function(func: Func) -> Iterator[str]:
    yield f"func {_word(func.name)}{_marks(func.attrs)}"
    for param in func.params:
        yield f"param {_part(param)}"
    yield from _lines(func.body, 0)


def _lines(stmt: Stmt, depth: int) -> Iterator[str]:
    """Lines of a statement that is the last of its block."""
    margin = INDENT * depth
    stmts = stmt.stmts if isinstance(stmt, Seq) and stmt is not NOTHING else (stmt,)
    for each in stmts[:-1]:
        yield from _compound(each, depth) or [margin + _simple(each)]
    match stmts[-1]:
        case Alloc(body=body) as alloc:
            yield margin + _alloc(alloc)
            yield from _lines(body, depth)
        case last:
            yield from _compound(last, depth) or [margin + _simple(last)]


def _compound(stmt: Stmt, depth: int) -> list[str]:
    """Lines of a statement that has others inside; nothing if it has none."""
    margin = INDENT * depth
    match stmt:
        case For(var, extent, body, kind, marks):
            head = f"{kind.value} {var.name} in {extent}{_marks(marks)}"
            return [margin + head, *_lines(body, depth + 1)]
        case If(condition, then, otherwise):
            lines = [f"{margin}if {show(condition)}", *_lines(then, depth + 1)]
            if otherwise is not None:
                lines += [f"{margin}else", *_lines(otherwise, depth + 1)]
            return lines
        case Block(name, body, init, reductions, marks):
            over = f" over {', '.join(show(var) for var in reductions)}" if reductions else ""
            lines = [f"{margin}block {name}{over}{_marks(marks)}"]
            if init is not None:
                lines += [f"{margin}{INDENT}init", *_lines(init, depth + 2)]
            return [*lines, *_lines(body, depth + 1)]
        case Alloc(body=body):
            return [f"{margin}{_alloc(stmt)}:", *_lines(body, depth + 1)]
        case Seq() if stmt is not NOTHING:
            raise TypeError("a sequence directly inside a sequence has no text")
        case _:
            return []


def _alloc(alloc: Alloc) -> str:
    return f"alloc {_part(alloc.buffer)}{_marks(alloc.marks)}"


def _simple(stmt: Stmt) -> str:
    match stmt:
        case Store(buffer, index, value):
            return f"{_place(buffer, index)} = {show(value)}"
        case Dma():
            return _dma(stmt)
        case MicroKernel():
            return _kernel(stmt)
        case Push(source, sink):
            return f"push({source.name.lower()}, {sink.name.lower()})"
        case Pop(source, sink):
            return f"pop({source.name.lower()}, {sink.name.lower()})"
        case Synchronize():
            return "synchronize()"
        case Seq():
            return "pass"
        case _:
            raise TypeError(f"no text for {type(stmt).__name__}")


DMA_SHAPE: Final = ("rows", "columns", "stride")
DMA_PADS: Final = ("pad_top", "pad_left", "pad_bottom", "pad_right")
"""Names of a copy's numbers; a pad that is not written is 0."""


def _dma(dma: Dma) -> str:
    numbers = [(name, show(getattr(dma, name))) for name in DMA_SHAPE + DMA_PADS]
    written = [f"{name}={text}" for name, text in numbers if name in DMA_SHAPE or text != "0"]
    return f"{dma.direction}({_part(dma.sram)}, {_part(dma.dram)}, {', '.join(written)})"


def _kernel(kernel: MicroKernel) -> str:
    operands = ("dst", "src", "wgt")
    refs = [(name, getattr(kernel, name)) for name in operands]
    parts = [kernel.opcode, *(f"{name}={_part(ref)}" for name, ref in refs if ref is not None)]
    if kernel.imm is not None:
        parts.append(f"imm={show(kernel.imm) if isinstance(kernel.imm, Expr) else kernel.imm}")
    parts += ["reset=True"] if kernel.reset else []
    parts.append(f"loops=[{', '.join(map(_part, kernel.loops))}]")
    parts.append(f"uops=[{', '.join(map(_part, kernel.uops))}]")
    return f"{kernel.engine}({', '.join(parts)})"


def _marks(marks: tuple[Mark, ...]) -> str:
    if not marks:
        return ""
    return f" {{{', '.join(map(_mark, marks))}}}"


def _mark(mark: Mark) -> str:
    text = str(mark.value) if isinstance(mark.value, int) else _word(mark.value)
    return f"{mark.name}={text}"


def _word(text: str) -> str:
    """A name as it is, anything else in quotes."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)
