"""The primitive that hands a block's innermost loops to an instruction: the accelerator's, or what
a user's intrinsic is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from tilefarm.dtype import DType
from tilefarm.errors import ScheduleError
from tilefarm.target import Target

from compile_worker.ir.annotations import INTRINSIC, TENSORIZE, Intrinsic
from compile_worker.ir.expr import Add, Cast, Const, Expr, Load, Mul, Var
from compile_worker.ir.func import Func
from compile_worker.ir.printer import show
from compile_worker.ir.stmt import Block, For, Stmt, Store
from compile_worker.ir.tile_intrinsics import TileIntrinsic, call_of, tile_intrinsic
from compile_worker.schedule.marks import marked
from compile_worker.schedule.places import Path, block_path, block_target, replaced
from compile_worker.schedule.schedule import Schedule, primitive

Matcher: TypeAlias = Callable[[Block, tuple[For, ...], Target], str]
"""Why a block in its loops is not what the instruction does; empty when it is."""


@primitive
def tensorize(schedule: Schedule, stage: str, intrinsic: str) -> Func:
    """Let an instruction do a block's innermost loops; the block keeps its meaning and gets a mark.

        for b in 0:1: for o in 0:16: for i in 0:16: block conv
    ->                                                          tensorize("conv", "gemm")
        for b in 0:1: for o in 0:16: for i in 0:16: block conv {tensorize=gemm}

    An intrinsic of a user's marks its loops as well, which passes then leave as they are.

    Raises:
        ScheduleError: no such instruction, the target lacks it, or the block and its loops are not
            what it does.
    """
    mine = tile_intrinsic(intrinsic)
    if mine is not None:
        return _with_intrinsic(schedule, stage, mine)
    known = next((each for each in INTRINSICS if each == intrinsic), None)
    if known is None:
        why = f"the target has no {intrinsic!r}"
        hint = f"one of {', '.join(INTRINSICS)}, or --plugin with the file that declares it"
        raise ScheduleError("tensorize", stage, why, hint)
    path = block_path("tensorize", schedule.func, stage)
    block = block_target(path)
    matcher = INTRINSICS[known]
    why = matcher(block, path.loops, schedule.target)
    if why:
        legal = (matcher.__doc__ or "").rstrip(".")
        raise ScheduleError("tensorize", stage, f"not a {intrinsic}: {why}", legal)
    return replaced(schedule.func, path, marked(block, TENSORIZE(known)))


def _with_intrinsic(schedule: Schedule, stage: str, mine: TileIntrinsic) -> Func:
    """The marks of a user's intrinsic on a block's innermost loops and on the block."""
    path = block_path("tensorize", schedule.func, stage)
    block, depth = block_target(path), len(mine.loops)
    if lacking := mine.lacking(schedule.target.host):
        why = f"{mine.name} needs {lacking}, which {schedule.target.name} has not"
        raise ScheduleError("tensorize", stage, why, "another target, or leave it out")
    nest = path.steps[-depth - 1] if len(path.steps) > depth else block
    if call_of(mine, nest) is None:
        loops = ", ".join(f"{var.name} of {extent}" for var, extent in mine.loops)
        why = f"it is not what {mine.name} does over its innermost loops"
        raise ScheduleError("tensorize", stage, why, f"loops as {loops}: {show(mine.store)}")
    mark = INTRINSIC(mine.name)
    made: Stmt = marked(block, mark)
    for loop in reversed(path.loops[-depth:]):
        made = marked(For(loop.var, loop.extent, made, loop.kind, loop.marks), mark)
    return replaced(schedule.func, Path(path.steps[:-depth]), made)


def not_gemm(block: Block, loops: tuple[For, ...], target: Target) -> str:
    """acc[.., b, o] += int32(inp[.., b, i]) * int32(wgt[.., o, i]), the three loops innermost."""
    match block.body:
        case Store(acc, to, Add(left=Load(buffer=old, index=at), right=Mul(left=x, right=w))):
            data, weight = _narrow(x), _narrow(w)
        case _:
            return "it does not add a product to what it stores"
    if data is None or weight is None or old is not acc or at != to or block.init is None:
        return "it is no sum of products of int8 elements"
    scopes = (acc.scope, data.buffer.scope, weight.buffer.scope)
    if scopes != ("acc", "inp", "wgt"):
        return f"it works in {', '.join(scopes)}, not in acc, inp, wgt"
    rows, lanes = to[-2:]
    inner = {loop.var: loop.extent for loop in loops[-3:]}
    want = {rows: target.lanes.batch, lanes: target.lanes.block, data.index[-1]: target.lanes.block}
    if {at: want[at] for at in want} != dict(inner):
        return f"its three innermost loops are not {_shown(want)}"
    if data.index[-2] is not rows or weight.index[-2:] != (lanes, data.index[-1]):
        return "its lanes are not [b, o], [b, i] and [o, i]"
    return ""


def not_reset(block: Block, loops: tuple[For, ...], target: Target) -> str:
    """acc[.., b, o] = 0, the two loops innermost."""
    match block.body:
        case Store(acc, to, Const(0, DType.INT32)) if acc.scope == "acc" and block.init is None:
            inner = {loop.var: loop.extent for loop in loops[-2:]}
            want: dict[Expr, int] = {to[-2]: target.lanes.batch, to[-1]: target.lanes.block}
            return "" if want == dict(inner) else f"its innermost loops are not {_shown(want)}"
        case _:
            return "it does not set accumulators to 0"


def _narrow(expr: Expr) -> Load | None:
    """The int8 element that `expr` widens to int32."""
    match expr:
        case Cast(type=DType.INT32, value=Load() as load) if load.dtype is DType.INT8:
            return load
        case _:
            return None


def _shown(want: Mapping[Expr, int]) -> str:
    names = (at.name if isinstance(at, Var) else "?" for at in want)
    return ", ".join(
        f"{name} of {extent}" for name, extent in zip(names, want.values(), strict=True)
    )


INTRINSICS: Final[Mapping[Intrinsic, Matcher]] = {"gemm": not_gemm, "reset": not_reset}
"""The instructions that a nest can be handed to, and what tells whether it is one."""
