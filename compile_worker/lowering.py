"""Lowering: one tuple of passes from scheduled loops to what code generation takes.

Every pass is a function from function to function in a file of its own, and leaves the meaning
alone: `interpret` gives the same answer before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from tilefarm.errors import UserError
from tilefarm.target import Target

from compile_worker.ir.func import Func
from compile_worker.ir.simplify import simplify
from compile_worker.ir.verify import Stage, VerifyError, verify
from compile_worker.machines.vta.passes.chain_sums import chain_sums
from compile_worker.machines.vta.passes.check_guards import check_guards
from compile_worker.machines.vta.passes.check_instructions import check_instructions
from compile_worker.machines.vta.passes.check_memories import check_memories
from compile_worker.machines.vta.passes.insert_tokens import insert_tokens
from compile_worker.machines.vta.passes.lower_alu import lower_alu
from compile_worker.machines.vta.passes.lower_dma import lower_dma
from compile_worker.machines.vta.passes.lower_gemm import lower_gemm
from compile_worker.machines.vta.passes.merge_in_place import merge_in_place
from compile_worker.machines.vta.passes.part_stores import part_stores
from compile_worker.machines.vta.passes.place_sram import place_sram
from compile_worker.machines.vta.passes.rotate_slots import rotate_slots
from compile_worker.machines.vta.passes.rounded_starts import rounded_starts
from compile_worker.machines.vta.passes.skip_rows import skip_rows
from compile_worker.machines.vta.passes.spread_loads import spread_loads
from compile_worker.machines.vta.passes.stagger_stores import stagger_stores
from compile_worker.passes.compact_buffers import compact_buffers
from compile_worker.passes.decompose_reductions import decompose_reductions
from compile_worker.passes.flatten import flatten
from compile_worker.passes.fuse_reductions import fuse_reductions
from compile_worker.passes.inline_stages import inline_stages
from compile_worker.passes.merge_loops import merge_loops
from compile_worker.passes.partition_loops import partition_loops
from compile_worker.passes.rewrite_storage import rewrite_storage
from compile_worker.passes.sink_lanes import sink_lanes
from compile_worker.passes.unroll_loops import unroll_loops
from compile_worker.passes.vectorize_loops import vectorize_loops

Watcher: TypeAlias = Callable[[str, Func], None]

SCHEDULED: Final = "scheduled"
"""What comes before the first pass, by the name that watchers and `with_pass` know it by."""


class PassError(UserError):
    """A user's pass cannot go where it should, or leaves what it must not."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A named step of lowering, and the stage whose rules hold afterwards.

    With `is_verified` these rules are checked each time it has run, as for every pass of a user.
    """

    name: str
    run: Callable[[Func, Target], Func]
    leaves: Stage
    is_verified: bool = False


def _simplify(func: Func, target: Target) -> Func:
    del target
    return simplify(func)


LOWERING: Final[tuple[Pass, ...]] = (
    Pass("inline_stages", inline_stages, Stage.SCHEDULED),
    Pass("fuse_reductions", fuse_reductions, Stage.SCHEDULED),
    Pass("sink_lanes", sink_lanes, Stage.SCHEDULED),
    Pass("decompose_reductions", decompose_reductions, Stage.DECOMPOSED),
    Pass("compact_buffers", compact_buffers, Stage.DECOMPOSED),
    Pass("skip_rows", skip_rows, Stage.DECOMPOSED),
    Pass("merge_in_place", merge_in_place, Stage.DECOMPOSED),
    Pass("chain_sums", chain_sums, Stage.DECOMPOSED),
    Pass("part_stores", part_stores, Stage.DECOMPOSED),
    Pass("check_guards", check_guards, Stage.DECOMPOSED),
    Pass("check_memories", check_memories, Stage.DECOMPOSED),
    Pass("lower_gemm", lower_gemm, Stage.DECOMPOSED),
    Pass("lower_alu", lower_alu, Stage.DECOMPOSED),
    Pass("lower_dma", lower_dma, Stage.EXPLICIT),
    Pass("rotate_slots", rotate_slots, Stage.EXPLICIT),
    Pass("stagger_stores", stagger_stores, Stage.EXPLICIT),
    Pass("spread_loads", spread_loads, Stage.EXPLICIT),
    Pass("insert_tokens", insert_tokens, Stage.EXPLICIT),
    Pass("check_instructions", check_instructions, Stage.EXPLICIT),
    Pass("place_sram", place_sram, Stage.PLACED),
    Pass("rounded_starts", rounded_starts, Stage.PLACED),
    Pass("flatten", flatten, Stage.FLAT),
    Pass("simplify", _simplify, Stage.FLAT),
    Pass("merge_loops", merge_loops, Stage.FLAT),
    Pass("unroll_loops", unroll_loops, Stage.FLAT),
    Pass("partition_loops", partition_loops, Stage.FLAT),
    Pass("vectorize_loops", vectorize_loops, Stage.FLAT),
    Pass("rewrite_storage", rewrite_storage, Stage.FLAT),
)


def look_away(name: str, func: Func) -> None:
    """The watcher that does not look."""


def lower(
    func: Func,
    target: Target,
    *,
    passes: Sequence[Pass] = LOWERING,
    watch: Watcher = look_away,
    check: bool = False,
) -> Func:
    """Run every pass.

    Args:
        func: a scheduled function, or the plain nest of a CPU operator.
        target: the accelerator, whose limits are respected.
        passes: LOWERING, perhaps with more of them: see `with_pass`.
        watch: is shown the function after each pass.
        check: verify the rules of its stage after each pass, which takes longer than the pass.

    Raises:
        Refused: the accelerator cannot hold what the schedule asks for.
        VerifyError: a pass has left something that its stage forbids, which is a bug.
        PassError: a user's pass has.
    """
    for step in passes:
        func = applied(step, func, target)
        if check:
            verify(func, step.leaves)
        watch(step.name, func)
    return func


def applied(step: Pass, func: Func, target: Target) -> Func:
    """The function after one pass; raises as `lower` does."""
    made = step.run(func, target)
    if not step.is_verified:
        return made
    if not isinstance(made, Func):
        raise PassError(f"pass {step.name} gives {type(made).__name__}, not a function of the IR")
    try:
        verify(made, step.leaves)
    except VerifyError as broken:
        stage = step.leaves.name.lower()
        why = f"pass {step.name} breaks a rule of the stage {stage}: {broken.what}"
        raise PassError(why, "see the rules in compile_worker/ir/verify.py") from None
    return made


def with_pass(passes: Sequence[Pass], step: Pass, *, after: str) -> tuple[Pass, ...]:
    """The passes with one more, behind the one that is called `after`; it is always verified.

        inline_stages, …, flatten, simplify
    ->                          with_pass(LOWERING, Pass("mine", run, Stage.FLAT), after="flatten")
        inline_stages, …, flatten, mine, simplify

    Args:
        after: name of a pass; "scheduled" means before all of them.

    Raises:
        PassError: no such pass, a name that is taken, or a stage that lowering is not at there.
    """
    names = [SCHEDULED, *(each.name for each in passes)]
    if after not in names:
        raise PassError(f"there is no pass {after!r} to go behind", f"one of {', '.join(names)}")
    if step.name in names:
        raise PassError(f"there already is a pass {step.name!r}", "give it another name")
    at = names.index(after)
    stages = [Stage.SCHEDULED, *(each.leaves for each in passes), Stage.FLAT]
    if not stages[at] <= step.leaves <= stages[at + 1]:
        fitting = dict.fromkeys(stage.name for stage in stages[at : at + 2])
        why = f"pass {step.name} leaves {step.leaves.name}, behind {after} it cannot"
        raise PassError(why, f"let it leave {' or '.join(fitting)}")
    return (*passes[:at], replace(step, is_verified=True), *passes[at:])
