"""What must hold of a function at each stage of lowering: one rule a line, in one table.

A pass that leaves something else has a bug; `verify` names the rule that is broken and where.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

from tilefarm.dtype import DType
from tilefarm.errors import TilefarmError

from compile_worker.ir.accesses import Access, accesses, outside
from compile_worker.ir.bounds import extents_of
from compile_worker.ir.evaluate import INTRINSICS
from compile_worker.ir.expr import (
    INDEX,
    And,
    Binary,
    Buffer,
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
    Var,
)
from compile_worker.ir.func import Func
from compile_worker.ir.instructions import misplaced
from compile_worker.ir.node import Node
from compile_worker.ir.printer import show
from compile_worker.ir.stmt import (
    Alloc,
    Block,
    Dma,
    For,
    If,
    MicroKernel,
    Pop,
    Push,
    Ref,
    Seq,
    Stmt,
    Store,
    Synchronize,
)
from compile_worker.ir.visit import children, find, walk

_EXCERPT_LINES: Final = 6


class Stage(IntEnum):
    """How far a function is on its way from tensor expressions to instructions."""

    NEST = 0
    """As tensor expressions give it: one loop nest for each stage."""
    SCHEDULED = 1
    """Loops tiled and moved, blocks still name what a nest computes."""
    DECOMPOSED = 2
    """Reductions have been taken apart: no block initialises."""
    EXPLICIT = 3
    """Only copies and micro-op kernels touch on-chip memory."""
    PLACED = 4
    """On-chip buffers have their place, tokens order who uses it."""
    FLAT = 5
    """No blocks are left, and host accesses have one index."""


class VerifyError(TilefarmError):
    """A function breaks a rule of its stage: which rule, why, and the text of the place."""

    def __init__(self, rule: str, why: str, excerpt: str = "") -> None:
        Exception.__init__(self, rule, why, excerpt)

    @property
    def rule(self) -> str:
        return str(self.args[0])

    @property
    def what(self) -> str:
        rule, why, excerpt = self.args
        return f"{rule}: {why}" + (f"\n{excerpt}" if excerpt else "")

    @property
    def hint(self) -> str:
        return ""


Finding: TypeAlias = tuple[str, Node]
"""What is wrong, and where."""

Check: TypeAlias = Callable[[Func], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A check and the stages that it holds for."""

    name: str
    check: Check
    first: Stage = Stage.NEST
    last: Stage = Stage.FLAT


def verify(func: Func, stage: Stage) -> None:
    """Checks every rule of a stage.

    Raises:
        VerifyError: the first finding, in the order of RULES.
    """
    for rule in RULES:
        if rule.first <= stage <= rule.last:
            for why, where in rule.check(func):
                raise VerifyError(rule.name, why, _excerpt(where))


def _excerpt(where: Node) -> str:
    lines = show(where).splitlines()
    return "\n".join([*lines[:_EXCERPT_LINES], *(["..."] if len(lines) > _EXCERPT_LINES else [])])


def _unique_names(func: Func) -> Iterator[Finding]:
    buffers = [*func.params, *(alloc.buffer for alloc in find(func.body, Alloc))]
    for name, count in Counter(buffer.name for buffer in buffers).items():
        if count > 1:
            yield f"{count} buffers are called {name}", func
    extents: dict[Var, int] = {}
    for loop in find(func.body, For):
        if extents.setdefault(loop.var, loop.extent) != loop.extent:
            yield f"loops over {loop.var.name} with different extents", loop


def _one_block_each(func: Func) -> Iterator[Finding]:
    for name, count in Counter(block.name for block in find(func.body, Block)).items():
        if count > 1:
            yield f"{count} blocks are called {name}", func


def _variables_bound(func: Func) -> Iterator[Finding]:
    yield from _unbound(func.body, frozenset(), func.body)


def _unbound(node: Node, bound: frozenset[Var], where: Stmt) -> Iterator[Finding]:
    match node:
        case Var(name):
            if node not in bound:
                yield f"no loop around binds {name}", where
        case For(var, _, body):
            if var in bound:
                yield f"{var.name} is bound twice", node
            yield from _unbound(body, bound | {var}, node)
        case _:
            for child in children(node):
                yield from _unbound(child, bound, node if isinstance(node, Stmt) else where)


def _buffers_declared(func: Func) -> Iterator[Finding]:
    yield from _undeclared(func.body, frozenset(func.params), func.body)


def _undeclared(node: Node, known: frozenset[Buffer], where: Stmt) -> Iterator[Finding]:
    match node:
        case Buffer(name):
            if node not in known:
                yield f"buffer {name} does not exist here", where
        case Alloc(buffer, body):
            yield from _undeclared(body, known | {buffer}, node)
        case _:
            for child in children(node):
                yield from _undeclared(child, known, node if isinstance(node, Stmt) else where)


def _extents_positive(func: Func) -> Iterator[Finding]:
    for node in walk(func):
        if isinstance(node, For) and node.extent < 1:
            yield f"{node.extent} iterations", node
        if isinstance(node, Buffer) and any(extent < 1 for extent in node.shape):
            yield f"{node.name} has no elements", node


def _sequences_flat(func: Func) -> Iterator[Finding]:
    for seq in find(func.body, Seq):
        if len(seq.stmts) == 1 or any(isinstance(each, Seq) for each in seq.stmts):
            yield "a sequence of one, or directly inside another", func


def _ranks(func: Func) -> Iterator[Finding]:
    for place in find(func.body, Load):
        if len(place.index) != len(place.buffer.shape):
            yield f"{place.buffer.name} has rank {len(place.buffer.shape)}", place
    for store in find(func.body, Store):
        if len(store.index) != len(store.buffer.shape):
            yield f"{store.buffer.name} has rank {len(store.buffer.shape)}", store


def _types_agree(func: Func) -> Iterator[Finding]:
    for node in walk(func.body):
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
        case Call(name) if name not in INTRINSICS:
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


_SCOPES: Final[Mapping[str, frozenset[DType] | None]] = {
    "local": None,
    "inp": frozenset({DType.INT8}),
    "wgt": frozenset({DType.INT8}),
    "acc": frozenset({DType.INT32}),
}
"""Where buffers can be allocated, and of which types; None is any."""


def _scopes_legal(func: Func) -> Iterator[Finding]:
    for param in func.params:
        if param.scope != "dram":
            yield f"a parameter in {param.scope}", param
    for alloc in find(func.body, Alloc):
        buffer = alloc.buffer
        if buffer.scope not in _SCOPES:
            yield f"nothing can be allocated in {buffer.scope}", alloc
        elif buffer.dtype not in (_SCOPES[buffer.scope] or DType):
            yield f"{buffer.scope} cannot hold {buffer.dtype}", alloc


def _in_bounds(func: Func) -> Iterator[Finding]:
    extents = extents_of(func.body)
    seen: set[Access] = set()
    for access in accesses(func.body):
        if access not in seen:
            seen.add(access)
            why = outside(access, extents)
            if why:
                yield why, access.place


def _inputs_untouched(func: Func) -> Iterator[Finding]:
    stored = {store.buffer for store in find(func.body, Store)}
    stored |= {dma.dram.buffer for dma in find(func.body, Dma) if dma.direction == "store"}
    read = {load.buffer for load in find(func.body, Load)}
    outputs = [param for param in func.params if param in stored]
    if not outputs:
        yield "nothing is written", func
    if outputs != list(func.params[len(func.params) - len(outputs) :]):
        yield "the outputs are not the last parameters", func
    for param in func.params:
        if param not in stored and param not in read and not _copied(func, param):
            yield f"parameter {param.name} is not used", func


def _copied(func: Func, param: Buffer) -> bool:
    return any(dma.dram.buffer is param for dma in find(func.body, Dma))


def _plain_nests(func: Func) -> Iterator[Finding]:
    body = func.body
    while isinstance(body, Alloc):
        body = body.body
    for nest in body.stmts if isinstance(body, Seq) else (body,):
        at: Stmt = nest
        while isinstance(at, For):
            at = at.body
        if not isinstance(at, Block):
            yield "not a nest of loops around one block", nest


def _host_only(func: Func) -> Iterator[Finding]:
    yield from _none_of(func, (Dma, MicroKernel, Push, Pop, Synchronize))


def _no_init(func: Func) -> Iterator[Finding]:
    for block in find(func.body, Block):
        if block.init is not None:
            yield "initialises although reductions are decomposed", block


def _no_blocks(func: Func) -> Iterator[Finding]:
    yield from _none_of(func, (Block,))


def _none_of(func: Func, kinds: tuple[type[Stmt], ...]) -> Iterator[Finding]:
    for node in walk(func.body):
        if isinstance(node, kinds):
            yield f"{type(node).__name__} has no place here", node


def _host_off_chip(func: Func) -> Iterator[Finding]:
    for node in walk(func.body):
        if isinstance(node, Load | Store) and node.buffer.scope in ("inp", "wgt", "acc"):
            yield f"the host cannot reach {node.buffer.scope}", node


def _refs_in_scope(func: Func) -> Iterator[Finding]:
    for node in walk(func.body):
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


def _bases_given(func: Func) -> Iterator[Finding]:
    for alloc in find(func.body, Alloc):
        if alloc.buffer.scope != "local" and "base" not in dict(alloc.marks):
            yield f"{alloc.buffer.name} has no place in {alloc.buffer.scope}", alloc


def _ends_synchronized(func: Func) -> Iterator[Finding]:
    uses = any(isinstance(node, Dma | MicroKernel) for node in walk(func.body))
    if uses and not isinstance(_last(func.body), Synchronize):
        yield "the accelerator is not waited for at the end", func


def _last(stmt: Stmt) -> Stmt:
    while isinstance(stmt, Seq | Alloc) and stmt != Seq(()):
        stmt = stmt.stmts[-1] if isinstance(stmt, Seq) else stmt.body
    return stmt


def _flat(func: Func) -> Iterator[Finding]:
    local = (alloc.buffer for alloc in find(func.body, Alloc) if alloc.buffer.scope == "local")
    for buffer in (*func.params, *local):
        if len(buffer.shape) != 1:
            yield f"{buffer.name} has rank {len(buffer.shape)}", buffer


RULES: Final[Iterable[Rule]] = (
    Rule("sequences are flat", _sequences_flat),
    Rule("names are unique", _unique_names),
    Rule("every block has its own name", _one_block_each, last=Stage.SCHEDULED),
    Rule("every extent is positive", _extents_positive),
    Rule("variables are bound", _variables_bound),
    Rule("buffers are declared", _buffers_declared),
    Rule("ranks agree", _ranks),
    Rule("types agree", _types_agree),
    Rule("scopes are legal", _scopes_legal),
    Rule("accesses are in bounds", _in_bounds),
    Rule("inputs are read, outputs written", _inputs_untouched),
    Rule("a nest is loops around a block", _plain_nests, last=Stage.NEST),
    Rule("work is blocks of the host", _host_only, last=Stage.SCHEDULED),
    Rule("no reduction initialises", _no_init, Stage.DECOMPOSED),
    Rule("the host stays off the chip", _host_off_chip, Stage.EXPLICIT),
    Rule("operands are in their memories", _refs_in_scope),
    Rule("instructions stay in their buffers", misplaced),
    Rule("on-chip buffers are placed", _bases_given, Stage.PLACED),
    Rule("the accelerator is waited for", _ends_synchronized, Stage.PLACED),
    Rule("no blocks are left", _no_blocks, Stage.FLAT),
    Rule("host buffers are flat", _flat, Stage.FLAT),
)
"""Every rule, in the order in which a broken one makes the next meaningless."""
