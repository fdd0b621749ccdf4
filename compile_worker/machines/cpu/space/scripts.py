"""The space of an operator of a user's own, on a processor: what the generation rules make of it.

Its script is all that is known: stages, loops and what they read. The default keeps a block of sums
in registers, with vectors along the last axis; no estimate says how long a point takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Final

from tilefarm.errors import ScheduleError
from tilefarm.target import Target
from tilefarm.trace import Step, Trace
from tilefarm.workload import Workload

from compile_worker.draft import Draft, Emptied
from compile_worker.generated import Generated
from compile_worker.ir.func import Func
from compile_worker.ir.tile_intrinsics import TileIntrinsic
from compile_worker.isa import isa_of
from compile_worker.machines.cpu.space.script_context import (
    BEFORE,
    BLOCK,
    TILE,
    ScriptContext,
    ScriptRule,
    outcomes,
)
from compile_worker.machines.cpu.space.script_intrinsics import ways
from compile_worker.machines.cpu.space.script_lockstep import lockstep_space
from compile_worker.machines.cpu.space.script_places import at, is_cheap, is_inlinable
from compile_worker.machines.cpu.space.script_regions import Regions
from compile_worker.machines.cpu.space.script_rows import fits_stack, is_in_sequence
from compile_worker.machines.cpu.space.script_rules import RULES, SIMPLIFYING, with_rules_of_users
from compile_worker.machines.cpu.space.script_stages import ScriptStages, Stage, stages_of
from compile_worker.machines.cpu.space.script_trace import script_steps
from compile_worker.machines.cpu.space.windows import SPARE, first_valid
from compile_worker.schedule import replay
from compile_worker.schedule.places import blocks
from compile_worker.te import nest_of

VERSION: Final = 2
"""Changes when the points of old records would mean other schedules."""

_TRIES: Final = 400
"""Blocks that are tried for the default, the best first."""

_MOST_VECTORS: Final = 4
"""Of a block along its lanes: more leave too few registers to its rows."""


def script_space(workload: Workload, target: Target) -> Generated | None:
    """The space of a script, by all rules of this process; see `space_by`."""
    return space_by(with_rules_of_users(), workload, target)


def script_trace(workload: Workload, target: Target) -> Trace:
    """The default schedule, which is the same in all processes; empty where there is no space."""
    try:
        made = space_by(RULES, workload, target)
    except Emptied:
        return Trace()
    return Trace() if made is None else made.trace(made.default)


def space_by(rules: Sequence[ScriptRule], workload: Workload, target: Target) -> Generated | None:
    """The space of a script; None where all that it does needs something else of it.

    Conditions become choices, and stages of several statements several stages, where that has a
    space. Stages of slow functions that several read are kept where there is room for what they
    make, and are inlined as all others otherwise. Where the last stage cannot be tiled, or the
    work is in stages that cannot, rows or columns that need nothing of one another are done
    together.

    Raises:
        Emptied: not one choice is valid, nor the script as it is written.
    """
    nest = nest_of(workload, target)
    simpler = simplified(nest, target)
    in_sequence = is_in_sequence(simpler[1])
    if in_sequence and (made := _in_lockstep(rules, workload, target, nest)) is not None:
        return made
    forms = [simpler, ((), nest)] if simpler[0] else [((), nest)]
    emptied: Emptied | None = None
    for (first, form), keep_slow in product(forms, (True, False)):
        try:
            made = _generated(workload, target, form, first, rules, keep_slow=keep_slow)
        except Emptied as error:
            emptied = error
        else:
            if made is not None:
                return made
    made = _in_lockstep(rules, workload, target, nest)
    if made is None and emptied is not None and not fits_stack(nest):
        raise emptied
    return made


def _in_lockstep(
    rules: Sequence[ScriptRule], workload: Workload, target: Target, nest: Func
) -> Generated | None:
    first, form = simplified(nest, target, ("if_convert",))
    return lockstep_space(workload, target, form, first, rules, VERSION)


def simplified(
    nest: Func, target: Target, by: Sequence[str] = SIMPLIFYING
) -> tuple[tuple[Step, ...], Func]:
    """What makes simple stages of those with conditions or several statements, and its result."""
    steps = []
    for name, block in product(by, [block.name for block in blocks(nest.body)]):
        step = Step(name, (block,))
        try:
            nest = replay(Trace((step,)), nest, target)
        except ScheduleError:
            continue
        steps.append(step)
    return tuple(steps), nest


def _generated(
    workload: Workload,
    target: Target,
    nest: Func,
    first: tuple[Step, ...],
    rules: Sequence[ScriptRule],
    *,
    keep_slow: bool,
) -> Generated | None:
    inlined: list[str] = []
    intrinsics = tuple(rule.intrinsic for rule in rules if rule.intrinsic is not None)
    stages = stages_of(nest)
    while stages and (stage := _next_inlined(stages, intrinsics, keep_slow=keep_slow)):
        inlined.append(stage.name)
        nest = replay(Trace((Step("compute_inline", (stage.name,)),)), nest, target)
        stages = stages_of(nest)
    if stages is None:
        return None
    context = ScriptContext(
        stages,
        Regions(stages),
        first,
        tuple(inlined),
        isa_of(target.host),
        target.model.threads,
        target.host,
        intrinsics,
    )
    draft = Draft()
    for rule in rules:
        if not rule.unmet(context):
            rule.declare(draft, context)
    default = first_valid(draft, _wished(draft, context))
    space = draft.space(workload.operator, VERSION, default)
    return Generated(space, partial(script_steps, context, rules), outcomes(rules, context))


def _next_inlined(
    stages: ScriptStages, intrinsics: Sequence[TileIntrinsic], *, keep_slow: bool
) -> Stage | None:
    def is_kept(stage: Stage) -> bool:
        assert stage.made is not None
        readers = stages.readers(stage.made)
        is_operand = any(ways(mine, reader) for mine in intrinsics for reader in readers)
        return is_operand or not is_cheap(stages, stage)

    found = (each for each in stages.producers if is_inlinable(stages, each))
    return next((each for each in found if not (keep_slow and is_kept(each))), None)


def _wished(draft: Draft, context: ScriptContext) -> Iterator[dict[str, int]]:
    """Points from the one that is best as a rule: many sums in registers, in tiles of everything.

    What is left gets its first value: operands as they are, sums one by one.
    """
    numbers = range(len(context.stages.axes))
    sizes, tiles = ([context.size(level, each) for each in numbers] for level in (BLOCK, TILE))
    lanes = draft.domain("lanes")[-1]
    base = {name: draft.domain(name)[0] for name in draft.tunables}
    base |= {"lanes": lanes, "shared": draft.domain("shared")[-1]}
    if draft.has("products"):
        base["products"] = draft.domain("products")[-1]
    liked = partial(_liked, context, lanes)
    blocks = sorted(product(*map(draft.domain, sizes)), key=liked, reverse=True)
    for level in (TILE, BLOCK, BEFORE):
        places = {at(each): level for each in context.stages.producers if draft.has(at(each))}
        if (main := context.stages.main) is not None:
            places[at(main)] = BLOCK
        known = {name: value for name, value in places.items() if value in draft.domain(name)}
        for block in blocks[:_TRIES]:
            point = {**base, **known, **dict(zip(sizes, block, strict=True))}
            whole = {**point, **{tile: draft.domain(tile)[-1] for tile in tiles}}
            for size in draft.domain(tiles[0])[::-1]:
                yield {**whole, tiles[0]: size}
            yield {**point, **dict(zip(tiles, block, strict=True))}


def _liked(context: ScriptContext, lanes: int, block: Sequence[int]) -> tuple[float, ...]:
    """How good a block is as a rule: whole vectors, as many sums as registers, in a few loads."""
    isa = context.isa
    vectors, rows = -(-block[lanes] // isa.lanes), prod(block) // block[lanes]
    whole = block[lanes] % isa.lanes == 0
    if context.stages.main is None:
        return (rows == 1, vectors)
    used = vectors * rows
    fits = used <= max(1, isa.registers - SPARE) and vectors <= _MOST_VECTORS
    return (fits, whole, used, -(vectors + rows), -vectors)
