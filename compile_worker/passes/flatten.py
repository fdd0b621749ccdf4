"""Host memory becomes one-dimensional, blocks lose their names.

block t: t[i, j] = a[j, 0]    ->    t[i*16 + j] = a[j*4]

Elements lie densely, except in local buffers that a schedule has aligned, or paired along an axis:

t[p, o]    ->    t[p//2*32 + o//2*4 + p%2*2 + o%2]      for 16 of o
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tilefarm.plural import plural
from tilefarm.target import Target

from compile_worker.errors import Violation, require
from compile_worker.ir.annotations import align, paired, skew
from compile_worker.ir.expr import INDEX, Add, Buffer, Const, Expr, FloorDiv, FloorMod, Load, Mul
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Alloc, Block, Ref, Seq, Store, sequence
from compile_worker.ir.visit import rewrite
from compile_worker.passes.nests import of_kind

STAGE: Final = "flatten"

LOCAL_NBYTES: Final = 64 * 1024
"""Most bytes of one local buffer: they live on the stack of whoever calls the kernel."""

STACK_LIMIT: Final = "local_nbytes"
"""The name of that limit."""


_PAIR: Final = 2
"""Neighbours along each axis of a tile of a paired buffer."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where elements lie: distances along each axis, in pairs along `paired` and the last one."""

    strides: tuple[int, ...]
    room: int
    paired: int | None = None


def flatten(func: Func, target: Target) -> Func:
    """Index every host buffer by one number, counted in elements of its type."""
    del target
    layouts = _layouts(func)
    flat = {buffer: _flat(buffer, layout) for buffer, layout in layouts.items()}

    def rule(node: Node) -> Node | None:
        match node:
            case Load(buffer, index) if buffer in flat:
                return Load(flat[buffer], _position(layouts[buffer], index))
            case Store(buffer, index, value) if buffer in flat:
                return Store(flat[buffer], _position(layouts[buffer], index), value)
            case Alloc(buffer, body, marks) if buffer in flat:
                require(STAGE, _stack_fits(flat[buffer]))
                return Alloc(flat[buffer], body, marks)
            case Block(body=body, init=None):
                return body
            case Seq(stmts):
                return sequence(stmts)
            case Ref(buffer, element) if buffer in flat:
                return Ref(flat[buffer], element)
            case _:
                return None

    params = tuple(flat[param] for param in func.params)
    return Func(func.name, params, rewrite(func.body, rule), func.attrs)


def _layouts(func: Func) -> dict[Buffer, _Layout]:
    """Where the elements of every buffer in host memory lie."""
    found = {param: _layout(param.shape, None) for param in func.params}
    for alloc in of_kind(func.body, Alloc):
        if alloc.buffer.scope == "local":
            found[alloc.buffer] = _layout(alloc.buffer.shape, alloc)
    return found


def _layout(shape: tuple[int, ...], alloc: Alloc | None) -> _Layout:
    axes = range(len(shape) - 1) if alloc and alloc.marks else ()
    axis = next((axis for axis in axes if alloc and paired(axis).is_on(alloc)), None)
    if axis is not None:
        pairs = [-(-extent // _PAIR) for extent in shape]
        last = pairs[-1] * _PAIR * _PAIR
        shape = (*shape[:axis], pairs[axis], *shape[axis + 1 : -1], last)
    strides = _distances(shape, alloc)
    return _Layout(strides, strides[0] * shape[0] if strides else 1, axis)


def _distances(shape: tuple[int, ...], alloc: Alloc | None) -> tuple[int, ...]:
    """Dense distances, widened to what `storage_align` has asked for of an allocated buffer."""
    found = [1]
    for axis in reversed(range(len(shape) - 1)):
        dense = found[0] * shape[axis + 1]
        found.insert(0, _aligned(alloc, axis, dense) if alloc and alloc.marks else dense)
    return tuple(found[: len(shape)])


def _aligned(alloc: Alloc, axis: int, dense: int) -> int:
    """The least distance along an axis that is aligned and not below the dense one."""
    factor, offset = align(axis).of(alloc), skew(axis).of(alloc)
    return -(-(dense - offset) // factor) * factor + offset


def _stack_fits(buffer: Buffer) -> Violation | None:
    nbytes = buffer.nbytes
    if nbytes <= LOCAL_NBYTES:
        return None
    why = f"{buffer.name} takes {plural(nbytes, 'byte')} on the stack, at most {LOCAL_NBYTES}"
    return Violation(STACK_LIMIT, why)


def _flat(buffer: Buffer, layout: _Layout) -> Buffer:
    if len(buffer.shape) == 1:
        return buffer
    return Buffer(buffer.name, (layout.room,), buffer.dtype, buffer.scope)


def _position(layout: _Layout, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
    if len(index) == 1:
        return index
    parts = list(zip(index, layout.strides, strict=True))
    if layout.paired is not None:
        (row, stride), (column, _) = parts[layout.paired], parts[-1]
        two = Const(_PAIR, INDEX)
        parts[layout.paired] = FloorDiv(row, two), stride
        parts[-1] = FloorDiv(column, two), _PAIR * _PAIR
        parts += [(FloorMod(row, two), _PAIR), (FloorMod(column, two), 1)]
    total: Expr = Const(0, INDEX)
    for at, stride in parts:
        total = Add(total, at if stride == 1 else Mul(at, Const(stride, INDEX)))
    return (total,)
