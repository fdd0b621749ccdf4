"""Where a script's stages before the tiled one are computed, and what they keep there.

Always-Inline makes a stage part of what reads it; Add-Cache-Stage lets sums grow in a cache of
their own; every other stage is computed before the tiles, or for each, or for each block of one.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilefarm.real import EXTREMES
from tilefarm.space import Point
from tilefarm.trace import Step

from compile_worker.draft import Draft
from compile_worker.ir.expr import Buffer, Call, Select
from compile_worker.ir.stmt import Store
from compile_worker.ir.visit import find
from compile_worker.machines.cpu.space.script_context import (
    BEFORE,
    BLOCK,
    LEVELS,
    TILE,
    ScriptContext,
)
from compile_worker.machines.cpu.space.script_dots import quads_of
from compile_worker.machines.cpu.space.script_stages import CACHE, ScriptStages, Stage
from compile_worker.machines.cpu.space.script_tiling import tiled_loops
from compile_worker.machines.cpu.space.windows import STACK
from compile_worker.passes.flatten import LOCAL_NBYTES


def is_inlinable(stages: ScriptStages, stage: Stage) -> bool:
    """Whether a stage is computed element by element, for others to read."""
    return stage is not stages.last and not stage.reduces and _is_private(stages, stage)


def is_cheap(stages: ScriptStages, stage: Stage) -> bool:
    """Whether computing it where it is read takes no longer: no function or choice, or read once.

    What dot products read lies in memory, as bytes.
    """
    assert stage.made is not None
    readers = stages.readers(stage.made)
    if any(quads_of(each) is not None for each in readers):
        return False
    functions = (call for call in find(stage.block, Call) if call.name not in EXTREMES)
    is_plain = next(functions, None) is None and next(find(stage.block, Select), None) is None
    return is_plain or sum(each.work for each in readers) <= stage.work


def declare_places(draft: Draft, context: ScriptContext) -> None:
    """at_*: where each stage is computed but the tiled one; turned_*: its sums side by side."""
    stages = context.stages
    if stages.has_cache:
        draft.tunable(at(stages.last), (TILE, BLOCK), LEVELS[TILE:])
        _declare_room(draft, context, stages.last)
    for stage in reversed(stages.producers):
        _declare_place(draft, context, stage)
        if stage is not stages.main and stage.reduced and stage.spatial:
            draft.tunable(f"turned_{stage.name}", (0, 1), ("one by one", "side by side"))


def _declare_place(draft: Draft, context: ScriptContext, stage: Stage) -> None:
    stages = context.stages
    readers = stages.readers(stage.made) if stage.made is not None else ()
    moved = [each for each in readers if each is not stages.last or stages.has_cache]
    if not _is_private(stages, stage) or any(draft.domain(at(r)) == (BEFORE,) for r in moved):
        draft.constant(at(stage), BEFORE)
        for buffer in dict.fromkeys(store.buffer for store in find(stage.block, Store)):
            if buffer.scope == CACHE and not draft.has(f"{buffer.name}_whole"):
                draft.constant(f"{buffer.name}_whole", nbytes_of(buffer))
                draft.at_most(
                    f"{buffer.name}_room", f"{buffer.name}_whole", LOCAL_NBYTES, why=STACK
                )
        return
    draft.tunable(at(stage), range(len(LEVELS)), LEVELS)
    for reader in moved:
        why = f"{reader.name} reads what {stage.name} makes"
        draft.at_most(f"{stage.name}_for_{reader.name}", at(stage), at(reader), why=why)
    _declare_room(draft, context, stage)


def _declare_room(draft: Draft, context: ScriptContext, stage: Stage) -> None:
    """What a stage makes fits the stack where it is computed."""
    assert stage.made is not None
    whole = draft.constant(f"{stage.name}_nbytes_before", nbytes_of(stage.made))
    levels = [
        whole,
        *(declare_nbytes(draft, context, stage.name, stage.made, level) for level in (TILE, BLOCK)),
    ]
    draft.select(f"{stage.name}_nbytes", at(stage), levels)
    draft.at_most(f"{stage.name}_stack", f"{stage.name}_nbytes", LOCAL_NBYTES, why=STACK)


def declare_nbytes(
    draft: Draft, context: ScriptContext, name: str, buffer: Buffer, level: int
) -> str:
    """A variable: the bytes of a buffer that a tile, or a block, needs."""
    suffix = ("", "tile", "block")[level]
    lengths = []
    for number, length in enumerate(context.regions.of(buffer)):
        terms = {context.size(level, axis): factor for axis, factor in length.terms.items()}
        total = f"{name}_{suffix}_extent{number}"
        lengths.append(draft.total(total, terms, constant=length.constant))
    nbytes = buffer.dtype.nbytes
    return draft.prod(f"{name}_nbytes_{suffix}", *lengths, coefficient=nbytes)


def place_steps(context: ScriptContext, point: Point) -> Iterator[Step]:
    """Compute stages where the point says, those first that read others."""
    stages = context.stages
    tiles, blocks, _ = tiled_loops(context, point)
    loops = (None, tiles[-1], blocks[-1])
    for stage in reversed(stages.stages if stages.has_cache else stages.producers):
        loop = loops[point[at(stage)]]
        if loop is not None:
            yield Step("compute_at", (stage.name, loop))


def at(stage: Stage) -> str:
    """The variable of where a stage is computed."""
    return f"at_{stage.name}"


def nbytes_of(buffer: Buffer) -> int:
    """The bytes of a whole buffer."""
    count = buffer.dtype.nbytes
    for extent in buffer.shape:
        count *= extent
    return count


def _is_private(stages: ScriptStages, stage: Stage) -> bool:
    """Whether a stage alone makes a buffer that only others of the script read."""
    made = stage.made
    return (
        made is not None
        and made.scope == CACHE
        and len(stages.writer_stages(made)) == 1
        and bool(stages.readers(made))
    )
