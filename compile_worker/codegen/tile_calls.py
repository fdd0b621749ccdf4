"""Nests that an intrinsic of a user's does: its operands as vectors, and one call.

    for j in 0:8: for t in 0:2: s[j] += a[t] * b[j*9 + t]    ->    a: <2 x i16> load, lanes repeated
                                                                   b: eight loads, joined
                                                                   s: load, the call, store

The user's text is the body of a private function of the module, which LLVM inlines.
"""

from __future__ import annotations

from itertools import product
from math import prod

from compile_worker.codegen.interleave import shuffled
from compile_worker.codegen.lane_memory import LaneMemory
from compile_worker.codegen.lane_runs import runs
from compile_worker.codegen.scalars import Scalars
from compile_worker.codegen.text import VALUE_TYPES, FunctionText
from compile_worker.ir.affine import linear
from compile_worker.ir.expr import INDEX, Const, Load, Var
from compile_worker.ir.simplify import simplify
from compile_worker.ir.stmt import For, Stmt
from compile_worker.ir.tile_intrinsics import TileCall, TileIntrinsic, tile_call
from compile_worker.ir.visit import find, substitute


def tile_function(mine: TileIntrinsic, name: str, attributes: str) -> str:
    """The function that an intrinsic is in a module."""
    given = ", ".join(f"{_kind(mine, each)} %{each.buffer.name}" for each in mine.operands)
    result = _kind(mine, mine.operands[-1])
    return (
        f"define internal {result} @{name}({given}) alwaysinline {attributes} {{\n{mine.llvm}\n}}\n"
    )


def tile_functions(body: Stmt, prefix: str, attributes: str) -> str:
    """Those of all nests in a function, each once."""
    calls = (call for loop in find(body, For) if (call := tile_call(loop)) is not None)
    found = {call.intrinsic.name: call.intrinsic for call in calls}
    return "".join(
        tile_function(mine, f"{prefix}.{name}", attributes) for name, mine in found.items()
    )


def write_tile_call(text: FunctionText, scalars: Scalars, call: TileCall, prefix: str) -> None:
    """Read the operands, call, and store the result where the last operand was."""
    mine = call.intrinsic
    scalars.enter()
    given = []
    for operand, access in zip(mine.operands, call.accesses, strict=True):
        start, offsets = _place(scalars, call, operand, access)
        vector = _read(text, access, start, offsets)
        given.append(f"{_kind(mine, operand)} {vector}")
    result = _kind(mine, mine.operands[-1])
    found = text.op(f"call {result} @{prefix}.{mine.name}({', '.join(given)})")
    dtype, active = call.accesses[-1].dtype, [True] * len(offsets)
    LaneMemory(text, len(offsets)).write(dtype, start, found, runs(offsets, active))
    scalars.leave()


def _kind(mine: TileIntrinsic, operand: Load) -> str:
    return f"<{prod(mine.extents(operand))} x {VALUE_TYPES[operand.dtype]}>"


def _place(
    scalars: Scalars, call: TileCall, operand: Load, access: Load
) -> tuple[str, tuple[int, ...]]:
    """The address of the first element, and how far from it the one of each lane is."""
    mine = call.intrinsic
    own = {var: loop for (var, _), loop in zip(mine.loops, call.loops, strict=True)}
    first = {loop: Const(0, INDEX) for loop in call.loops}
    (at,) = access.index
    start = scalars.address(access.buffer, (simplify(substitute(at, first)),), inbounds=False)
    terms, _ = linear(at)
    steps = [terms.get(own[var], 0) for var in operand.index if isinstance(var, Var)]
    lanes = product(*map(range, mine.extents(operand)))
    return start, tuple(sum(s * n for s, n in zip(steps, lane, strict=True)) for lane in lanes)


def _read(text: FunctionText, access: Load, start: str, offsets: tuple[int, ...]) -> str:
    """The elements at these offsets; one that several lanes have is read once."""
    dtype, places = access.dtype, sorted(set(offsets))
    active = [True] * len(places)
    vector = LaneMemory(text, len(places)).read(dtype, start, runs(places, active))
    order = [places.index(each) for each in offsets]
    if order == list(range(len(places))):
        return vector
    return shuffled(text, vector, "poison", order, len(places), VALUE_TYPES[dtype])
