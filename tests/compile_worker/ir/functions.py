"""Functions made of every kind of node, sensible or not: for whatever only looks at the form."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from hypothesis import strategies as st
from kit.kernels.nests import index_exprs
from tilefarm.dtype import DType

from compile_worker.ir.annotations import (
    ANNOTATIONS,
    BLOCK,
    NOTE,
    OF_AXIS,
    SLOTS,
    TENSORIZE,
    Annotation,
    AtLeast,
    Marked,
    OneOf,
)
from compile_worker.ir.expr import (
    INDEX,
    Add,
    And,
    Buffer,
    Call,
    Cast,
    Const,
    Div,
    Eq,
    Expr,
    Le,
    Load,
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
    index,
)
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import (
    NOTHING,
    Alloc,
    Block,
    Dma,
    For,
    HardwareLoop,
    If,
    LoopKind,
    Mark,
    MicroKernel,
    MicroOp,
    Module,
    Pop,
    Push,
    Ref,
    Stmt,
    Store,
    Synchronize,
    sequence,
)

INTS: Final = Buffer("ints", (4, 8), DType.INT32)
FLOATS: Final = Buffer("floats", (6,), DType.FLOAT32, "local")
TILES: Final = Buffer("tiles", (2, 1, 16), DType.INT32, "acc")
BUFFERS: Final = (INTS, FLOATS, TILES)

_INTEGERS: Final = (DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64)


def _literals() -> st.SearchStrategy[Expr]:
    floats = st.floats(width=32).map(lambda value: Const(value, DType.FLOAT32))
    truths = st.booleans().map(lambda value: Const(value, DType.BOOL))
    integers = st.builds(Const, st.integers(-(1 << 40), 1 << 40), st.sampled_from(_INTEGERS))
    return st.one_of(floats, truths, integers)


@cache
def values(depth: int) -> st.SearchStrategy[Expr]:
    """Expressions of any form; their types need not agree."""
    loads = st.builds(lambda i, j: Load(INTS, (i, j)), index_exprs(), index_exprs())
    leaves = st.one_of(_literals(), loads, index_exprs())
    if depth == 0:
        return leaves
    inner = values(depth - 1)
    pairs = [Add, Sub, Mul, Div, Shr, Min, Max, Lt, Le, Eq, Ne, And, Or]
    return st.one_of(
        leaves,
        st.builds(lambda kind, a, b: kind(a, b), st.sampled_from(pairs), inner, inner),
        st.builds(Select, inner, inner, inner),
        st.builds(Cast, st.sampled_from(list(DType)), inner),
        st.builds(lambda arg: Call("round_even", (arg,), DType.FLOAT32), inner),
    )


def marks(on: type[Marked]) -> st.SearchStrategy[tuple[Mark, ...]]:
    """Marks that a kind of node can carry, with any of their values."""
    of_axes = (of_axis(axis) for of_axis in OF_AXIS.values() for axis in (0, 12))
    fitting = [each for each in (*ANNOTATIONS, *of_axes) if on in each.on]
    return st.lists(st.sampled_from(fitting).flatmap(_mark), max_size=2).map(tuple)


def _mark(annotation: Annotation[Any, Any, Any]) -> st.SearchStrategy[Mark]:
    values: st.SearchStrategy[int | str]
    match annotation.values:
        case OneOf(few):
            values = st.sampled_from(few)
        case AtLeast(least):
            values = st.integers(least, least + 300)
        case _:
            awkward = ["load", "a-b", "", "two words", "12", '"{', "a=1, b=2}", "ü"]
            values = st.sampled_from(awkward) | st.text()
    return values.map(annotation)


def _refs() -> st.SearchStrategy[Ref]:
    return st.builds(Ref, st.sampled_from(BUFFERS), index_exprs())


def _kernels() -> st.SearchStrategy[Stmt]:
    numbers = st.integers(0, 2047)
    return st.builds(
        MicroKernel,
        st.sampled_from(["gemm", "alu"]),
        st.sampled_from(["mac", "min", "max", "add", "shr", "mul"]),
        _refs(),
        st.none() | _refs(),
        st.none() | _refs(),
        st.lists(st.builds(HardwareLoop, numbers, numbers, numbers, numbers), max_size=2).map(
            tuple
        ),
        st.lists(st.builds(MicroOp, numbers, numbers, numbers), max_size=3).map(tuple),
        st.none() | st.integers(-(1 << 15), (1 << 15) - 1),
        st.booleans(),
    )


@cache
def statements(depth: int) -> st.SearchStrategy[Stmt]:
    """Statements of any form, down to `depth` below."""
    modules, directions = st.sampled_from(Module), st.sampled_from(["load", "store"])
    leaves = st.one_of(
        st.builds(lambda i, value: Store(FLOATS, (i,), value), index_exprs(), values(1)),
        st.builds(Dma, directions, _refs(), _refs(), *[index_exprs()] * 7),
        _kernels(),
        st.builds(Push, modules, modules),
        st.builds(Pop, modules, modules),
        st.just(Synchronize()),
        st.just(NOTHING),
    )
    if depth == 0:
        return leaves
    inner = statements(depth - 1)
    names = st.sampled_from(["i", "j", "conv_h_0"]).map(Var)
    buffers = st.sampled_from([TILES, FLOATS])
    over = st.lists(names, max_size=2).map(tuple)
    return st.one_of(
        leaves,
        st.lists(inner, min_size=2, max_size=3).map(sequence),
        st.builds(For, names, st.integers(1, 9), inner, st.sampled_from(LoopKind), marks(For)),
        st.builds(If, values(1), inner, st.none() | inner),
        st.builds(Block, st.just("work"), inner, st.none() | inner, over, marks(Block)),
        st.builds(Alloc, buffers, inner, marks(Alloc)),
    )


def functions() -> st.SearchStrategy[Func]:
    """Functions of any form over BUFFERS."""
    return st.builds(
        Func,
        st.sampled_from(["f", "two words"]),
        st.just(BUFFERS),
        statements(3),
        marks(Func),
    )


def everything() -> Func:
    """One function with every kind of statement in it."""
    i, j = Var("i"), Var("j")
    zero = index(0)
    tile = Ref(TILES, i % 2)
    store = Store(INTS, (i, j), Select(Lt(i, j), INTS[i, j] + 1, Const(0, DType.INT32)))
    init = Store(INTS, (i, j), Const(0, DType.INT32))
    loops = (HardwareLoop(8, 1, 0, 0), HardwareLoop(2, 8, 1, 0))
    numbers = (index(2), index(3), index(8), Max(zero, Sub(Const(1, INDEX), i)), zero, zero, zero)
    device = [
        Push(Module.COMPUTE, Module.LOAD),
        Pop(Module.COMPUTE, Module.LOAD),
        Dma("load", tile, Ref(INTS, i * 8 + j), *numbers),
        MicroKernel("gemm", "mac", tile, tile, tile, loops, (MicroOp(0, 1, 2), MicroOp(1, 1, 3))),
        MicroKernel("gemm", "reset", tile, None, None, (), (MicroOp(0, 0, 0),), reset=True),
        MicroKernel("alu", "shr", tile, None, None, (), (MicroOp(0, 0, 0),), imm=-3),
        Synchronize(),
    ]
    host = [
        For(j, 8, Block("work", store, init, (j,), (TENSORIZE("gemm"),)), LoopKind.PARALLEL),
        If(Ne(i, 0 * j), store, NOTHING),
        Alloc(FLOATS, Store(FLOATS, (i,), FLOATS[i] * 0.5)),
    ]
    body = For(i, 4, sequence([*host, Alloc(TILES, sequence(device), (SLOTS(2),))]))
    return Func("everything", (INTS,), body, (BLOCK(16), NOTE("to show all")))
