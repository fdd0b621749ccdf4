"""Lowering: one tuple of passes from scheduled loops to what code generation takes.

Every pass is a function from function to function in a file of its own, and leaves the meaning
alone: `interpret` gives the same answer before and after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from tilefarm.target import Target

from compile_worker.ir.func import Func
from compile_worker.ir.simplify import simplify
from compile_worker.ir.verify import Stage, verify
from compile_worker.passes.check_instructions import check_instructions
from compile_worker.passes.check_memories import check_memories
from compile_worker.passes.compact_buffers import compact_buffers
from compile_worker.passes.decompose_reductions import decompose_reductions
from compile_worker.passes.flatten import flatten
from compile_worker.passes.fuse_reductions import fuse_reductions
from compile_worker.passes.inline_stages import inline_stages
from compile_worker.passes.insert_tokens import insert_tokens
from compile_worker.passes.lower_alu import lower_alu
from compile_worker.passes.lower_dma import lower_dma
from compile_worker.passes.lower_gemm import lower_gemm
from compile_worker.passes.merge_in_place import merge_in_place
from compile_worker.passes.place_sram import place_sram
from compile_worker.passes.rotate_slots import rotate_slots
from compile_worker.passes.sink_lanes import sink_lanes
from compile_worker.passes.skip_rows import skip_rows
from compile_worker.passes.stagger_stores import stagger_stores

Watcher: TypeAlias = Callable[[str, Func], None]


@dataclass(frozen=True, slots=True)
class Pass:
    """A named step of lowering, and the stage whose rules hold afterwards."""

    name: str
    run: Callable[[Func, Target], Func]
    leaves: Stage


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
    Pass("check_memories", check_memories, Stage.DECOMPOSED),
    Pass("lower_gemm", lower_gemm, Stage.DECOMPOSED),
    Pass("lower_alu", lower_alu, Stage.DECOMPOSED),
    Pass("lower_dma", lower_dma, Stage.EXPLICIT),
    Pass("rotate_slots", rotate_slots, Stage.EXPLICIT),
    Pass("stagger_stores", stagger_stores, Stage.EXPLICIT),
    Pass("insert_tokens", insert_tokens, Stage.EXPLICIT),
    Pass("check_instructions", check_instructions, Stage.EXPLICIT),
    Pass("place_sram", place_sram, Stage.PLACED),
    Pass("flatten", flatten, Stage.FLAT),
    Pass("simplify", _simplify, Stage.FLAT),
)


def look_away(name: str, func: Func) -> None:
    """The watcher that does not look."""


def lower(func: Func, target: Target, *, watch: Watcher = look_away, check: bool = False) -> Func:
    """Run every pass of LOWERING.

    Args:
        func: a scheduled function, or the plain nest of a CPU operator.
        target: the accelerator, whose limits are respected.
        watch: is shown the function after each pass.
        check: verify the rules of its stage after each pass, which takes longer than the pass.

    Raises:
        Refused: the accelerator cannot hold what the schedule asks for.
        VerifyError: a pass has left something that its stage forbids, which is a bug.
    """
    for step in LOWERING:
        func = step.run(func, target)
        if check:
            verify(func, step.leaves)
        watch(step.name, func)
    return func
