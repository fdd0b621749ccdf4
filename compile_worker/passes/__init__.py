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

Watcher: TypeAlias = Callable[[str, Func], None]


@dataclass(frozen=True, slots=True)
class Pass:
    """A named step of lowering."""

    name: str
    run: Callable[[Func, Target], Func]


def _simplify(func: Func, target: Target) -> Func:
    del target
    return simplify(func)


LOWERING: Final[tuple[Pass, ...]] = (
    Pass("inline_stages", inline_stages),
    Pass("fuse_reductions", fuse_reductions),
    Pass("sink_lanes", sink_lanes),
    Pass("decompose_reductions", decompose_reductions),
    Pass("compact_buffers", compact_buffers),
    Pass("merge_in_place", merge_in_place),
    Pass("check_memories", check_memories),
    Pass("lower_gemm", lower_gemm),
    Pass("lower_alu", lower_alu),
    Pass("lower_dma", lower_dma),
    Pass("rotate_slots", rotate_slots),
    Pass("insert_tokens", insert_tokens),
    Pass("place_sram", place_sram),
    Pass("flatten", flatten),
    Pass("simplify", _simplify),
)


def look_away(name: str, func: Func) -> None:
    """The watcher that does not look."""


def lower(func: Func, target: Target, *, watch: Watcher = look_away) -> Func:
    """Run every pass of LOWERING.

    Args:
        func: a scheduled function, or the plain nest of a CPU operator.
        target: the accelerator, whose limits are respected.
        watch: is shown the function after each pass.

    Raises:
        Refused: the accelerator cannot hold what the schedule asks for.
    """
    for step in LOWERING:
        func = step.run(func, target)
        watch(step.name, func)
    return func
