"""Rules about types and memories: what goes together, and who can reach what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tilefarm.dtype import DType

from compile_worker.ir.evaluate import INTRINSICS
from compile_worker.ir.expr import (
    INDEX,
    And,
    Binary,
    Call,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    Load,
    Logical,
    Or,
    Select,
    Shr,
)
from compile_worker.ir.findings import Finding
from compile_worker.ir.func import Func
from compile_worker.ir.intrinsics import intrinsic_of_user
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Dma, If, MicroKernel, Ref, Stmt, Store
from compile_worker.ir.visit import children, distinct, find


def ranks(func: Func) -> Iterator[Finding]:
    """As many indices as the buffer has axes."""
    for place in find(func.body, Load):
        if len(place.index) != len(place.buffer.shape):
            yield f"{place.buffer.name} has rank {len(place.buffer.shape)}", place
    for store in find(func.body, Store):
        if len(store.index) != len(store.buffer.shape):
            yield f"{store.buffer.name} has rank {len(store.buffer.shape)}", store


def types_agree(func: Func) -> Iterator[Finding]:
    """Operands, results and what is stored have the types that go together."""
    for node in distinct(func.body):
        why = _mistyped(node)
        if why:
            yield why, node


def _mistyped(node: Node) -> str:
    """What is wrong with the types of a node's operands; nothing if they are right."""
    match node:
        case Load(index=index) | Store(index=index) if any(i.dtype is not INDEX for i in index):
            return "an index is not int64"
        case Store(buffer, _, value) if value.dtype is not buffer.dtype:
            return f"{value.dtype} stored in {buffer.dtype}"
        case Select(condition, then, otherwise):
            return _mixed("select", [then, otherwise]) or _untrue(condition)
        case If(condition):
            return _untrue(condition)
        case And(left, right) | Or(left, right):
            return _untrue(left) or _untrue(right)
        case Binary() | Logical():
            return _mixed("operands", [node.left, node.right]) or _misplaced(node)
        case Call(name) if name not in INTRINSICS and intrinsic_of_user(name) is None:
            return f"there is no intrinsic {name}"
        case Dma() | Ref():
            return _mixed("numbers", [e for e in children(node) if isinstance(e, Expr)], INDEX)
    return ""


def _mixed(what: str, exprs: list[Expr], wanted: DType | None = None) -> str:
    wrong = {expr.dtype for expr in exprs} - {wanted or exprs[0].dtype}
    return f"{what} of types {', '.join(sorted(str(e.dtype) for e in exprs))}" if wrong else ""


def _untrue(condition: Expr) -> str:
    return "" if condition.dtype is DType.BOOL else f"a condition of type {condition.dtype}"


def _misplaced(node: Binary | Logical) -> str:
    """An operator on a type that it is not for."""
    dtype = node.left.dtype
    if isinstance(node, Div) and not dtype.is_float:
        return f"division of {dtype}; // is for integers"
    if isinstance(node, FloorDiv | FloorMod | Shr) and not dtype.is_integer:
        return f"{type(node).__name__} of {dtype}"
    return ""


SCOPES: Final[Mapping[str, frozenset[DType] | None]] = {
    "local": None,
    "inp": frozenset({DType.INT8}),
    "wgt": frozenset({DType.INT8}),
    "acc": frozenset({DType.INT32}),
}
"""Where buffers can be allocated, and of which types; None is any."""


def scopes_legal(func: Func) -> Iterator[Finding]:
    """Buffers are in memories that can hold their type."""
    for param in func.params:
        if param.scope != "dram":
            yield f"a parameter in {param.scope}", param
    for alloc in find(func.body, Alloc):
        buffer = alloc.buffer
        if buffer.scope not in SCOPES:
            yield f"nothing can be allocated in {buffer.scope}", alloc
        elif buffer.dtype not in (SCOPES[buffer.scope] or DType):
            yield f"{buffer.scope} cannot hold {buffer.dtype}", alloc


def host_off_chip(func: Func) -> Iterator[Finding]:
    """Loads and stores reach host memory only."""
    for node in distinct(func.body):
        if isinstance(node, Load | Store) and node.buffer.on_chip:
            yield f"the host cannot reach {node.buffer.scope}", node


def refs_in_scope(func: Func) -> Iterator[Finding]:
    """Instructions take their operands from the memories that they can reach."""
    for node in distinct(func.body):
        match node:
            case Dma(direction, sram, dram):
                scopes = ("inp", "wgt", "acc") if direction == "load" else ("acc",)
                yield from _scoped(node, sram, scopes)
                yield from _scoped(node, dram, ("dram",))
            case MicroKernel(engine, _, dst, src, wgt):
                yield from _scoped(node, dst, ("acc",))
                yield from _scoped(node, src, ("inp",) if engine == "gemm" else ("acc",))
                yield from _scoped(node, wgt, ("wgt",))


def _scoped(stmt: Stmt, ref: Ref | None, scopes: tuple[str, ...]) -> Iterator[Finding]:
    if ref is not None and ref.buffer.scope not in scopes:
        yield f"{ref.buffer.name} is in {ref.buffer.scope}, not {' or '.join(scopes)}", stmt
