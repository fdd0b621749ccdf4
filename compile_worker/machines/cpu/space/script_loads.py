"""Add-Multi-Level-SPM on a processor: operands that are read again pass copies in its caches.

    for tiles:
      part of b for this tile     ->  b_local
      for blocks:
        part of that              ->  b_local_local
        sums over b_local_local

A tile's part is for the second level of caches, a block's for the first: rows that lie apart in
memory are side by side there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilefarm.space import Point
from tilefarm.trace import Step

from compile_worker.draft import Draft
from compile_worker.ir.affine import as_affine
from compile_worker.ir.expr import Buffer
from compile_worker.machines.cpu.space.script_context import BLOCK, TILE, ScriptContext
from compile_worker.machines.cpu.space.script_places import at, declare_nbytes, nbytes_of
from compile_worker.machines.cpu.space.script_stages import CACHE
from compile_worker.machines.cpu.space.script_tiling import tiled_loops
from compile_worker.machines.cpu.space.windows import STACK
from compile_worker.passes.flatten import LOCAL_NBYTES

CACHE_NBYTES: Final = 1 << 15
"""Of a first-level cache: an operand that is smaller stays there by itself."""

_LOADS: Final = ("as it is", "once a tile", "once a block", "once a tile, parts once a block")
_FOR_TILE: Final = (1, 3)
_FOR_BLOCK: Final = (2, 3)


def staged_operands(context: ScriptContext) -> tuple[Buffer, ...]:
    """Inputs that the main stage alone reads, again and again, and no small cache holds."""
    stages, main = context.stages, context.stages.main
    if main is None:
        return ()
    found = []
    for buffer in stages.func.params:
        loads = main.loads(buffer)
        if not loads or stages.readers(buffer) != (main,) or nbytes_of(buffer) <= CACHE_NBYTES:
            continue
        forms = [as_affine(index) for load in loads for index in load.index]
        read = {var for form in forms if form is not None for var in form.terms}
        if None not in forms and any(loop.var not in read for loop in main.spatial):
            found.append(buffer)
    return tuple(found)


def declare_loads(draft: Draft, context: ScriptContext) -> None:
    """load_*: the copies that an operand passes; they fit the stack, inside of what reads them."""
    main = context.stages.main
    assert main is not None
    for buffer in staged_operands(context):
        load = draft.tunable(f"load_{buffer.name}", range(len(_LOADS)), _LOADS)
        place = at(main)
        within = {0: (0,), TILE: (0, 1), BLOCK: (0, 1, 2, 3)}
        rows = [(level, each) for level in draft.domain(place) for each in within[level]]
        why = f"{main.name} is computed where its operand is"
        draft.require_rows(f"{load}_place", (place, load), rows, why=why)
        draft.constant(f"{buffer.name}_nothing", 0)
        tile, block = (
            declare_nbytes(draft, context, buffer.name, buffer, level) for level in (TILE, BLOCK)
        )
        options = [f"{buffer.name}_nothing", tile, block, tile]
        draft.select(f"{buffer.name}_nbytes", load, options)
        draft.at_most(f"{buffer.name}_stack", f"{buffer.name}_nbytes", LOCAL_NBYTES, why=STACK)


def copy_steps(context: ScriptContext, point: Point) -> Iterator[Step]:
    """Read operands through as many copies as the point says."""
    for buffer in staged_operands(context):
        for count in range((point[f"load_{buffer.name}"] + 1) // 2):
            yield Step("cache_read", (buffer.name + f"_{CACHE}" * count, CACHE))


def load_steps(context: ScriptContext, point: Point) -> Iterator[Step]:
    """Make each copy where it is needed, the last one first."""
    tiles, blocks, _ = tiled_loops(context, point)
    for buffer in staged_operands(context):
        load = point[f"load_{buffer.name}"]
        copies = [blocks[-1]] * (load in _FOR_BLOCK) + [tiles[-1]] * (load in _FOR_TILE)
        for count, loop in zip(range(len(copies), 0, -1), copies, strict=True):
            yield Step("compute_at", (buffer.name + f"_{CACHE}" * count, loop))
