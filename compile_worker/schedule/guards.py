"""Guards that primitives share: each refuses what it names, and says what would be legal."""

from __future__ import annotations

from tilefarm.errors import ScheduleError

from compile_worker.ir.expr import Buffer
from compile_worker.ir.func import Func
from compile_worker.ir.nests import perfect_nest
from compile_worker.ir.reductions import as_written
from compile_worker.ir.stmt import Alloc, Block, For, LoopKind, Seq, Stmt, Store
from compile_worker.ir.visit import find, variables
from compile_worker.schedule.places import (
    Path,
    below,
    block_path,
    block_target,
    blocks,
    nest_path,
)


def serial(primitive: str, loop: For) -> For:
    """The loop, unless it was given a kind before."""
    if loop.kind is not LoopKind.SERIAL:
        why = f"it is already {loop.kind.value}"
        raise ScheduleError(primitive, loop.var.name, why, f"{primitive} it before")
    return loop


def independent(primitive: str, loop: For) -> None:
    """Refuse a loop that a block reduces over: its iterations need one another."""
    for block in find(loop, Block):
        if loop.var in block.reductions:
            why = f"{block.name} reduces over it"
            raise ScheduleError(primitive, loop.var.name, why, "another loop, or rfactor it first")


def unused_loops(primitive: str, func: Func, *names: str) -> None:
    """Refuse names that loops have already."""
    taken = {at.var.name for at in below(func.body) if isinstance(at, For)}
    for name in names:
        if name in taken:
            why = "there already is a loop of this name"
            raise ScheduleError(primitive, name, why, "another order of these steps")


def unused_stage(primitive: str, func: Func, name: str) -> None:
    """Refuse a name that a stage has already."""
    if any(block.name == name for block in blocks(func.body)):
        raise ScheduleError(primitive, name, "there already is a stage of this name", "it as it is")


def unused_buffer(primitive: str, func: Func, source: str, name: str) -> None:
    """Refuse a name that a buffer has already."""
    taken = {at.buffer.name for at in below(func.body) if isinstance(at, Alloc)}
    if name in taken | {param.name for param in func.params}:
        why = f"there already is a buffer {name}"
        raise ScheduleError(primitive, source, why, f"{name} itself, or another memory")


def plain_store(primitive: str, func: Func, block: Block, path: Path) -> Store:
    """The block's one store, at distinct loop variables of a nest that holds nothing else."""
    store, nest = block.body, nest_path(path).target
    own = {loop.var for loop in path.within(nest).loops}
    if not isinstance(store, Store):
        raise ScheduleError(primitive, block.name, "it is not a single store", "another stage")
    only_writer(primitive, func, block, store.buffer)
    if not set(store.index) <= own or len(set(store.index)) != len(store.index):
        raise ScheduleError(
            primitive,
            block.name,
            "its loops were split, fused or moved, so its elements are not its loops' values",
            f"{primitive} it before changing its loops",
        )
    if not variables(nest) <= own:
        why = "other stages are in its loops"
        raise ScheduleError(primitive, block.name, why, f"{primitive} it before them")
    return store


def unchanged_nest(primitive: str, func: Func, stage: str) -> tuple[Stmt, Path]:
    """A stage's loops around its statements as they were written, and the path to them."""
    if block_target(block_path(primitive, func, stage)).init is not None:
        raise ScheduleError(primitive, stage, "it is a sum", "a stage that is none")
    return written_nest(primitive, func, stage)


def written_nest(primitive: str, func: Func, stage: str) -> tuple[Stmt, Path]:
    """The same of any stage; what a sum starts from is where its loops begin."""
    path = block_path(primitive, func, stage)
    block, nest = block_target(path), nest_path(path)
    if block.marks or any(loop.marks or loop.kind is not LoopKind.SERIAL for loop in path.loops):
        raise ScheduleError(
            primitive, stage, "other steps have changed it", f"{primitive} it first"
        )
    if not all(isinstance(step, Alloc | Seq) for step in nest.steps[:-1]):
        raise ScheduleError(primitive, stage, "it is inside other loops", f"{primitive} it first")
    loops, _ = perfect_nest(nest.target)
    return as_written(loops, block), nest


def only_writer(primitive: str, func: Func, block: Block, buffer: Buffer) -> None:
    """Refuse a stage that shares the making of its buffer, as after decompose_reduction."""
    for other in blocks(func.body):
        if other is not block and writes(other, buffer):
            why = f"{other.name} writes {buffer.name} too"
            raise ScheduleError(primitive, block.name, why, f"{primitive} it before they are two")


def writes(block: Block, buffer: Buffer) -> bool:
    """Whether a block stores to `buffer`."""
    return any(store.buffer is buffer for store in find(block, Store))


def one_of(names: list[str]) -> str:
    """A hint that lists what there is."""
    return f"one of {', '.join(dict.fromkeys(names))}" if names else ""
