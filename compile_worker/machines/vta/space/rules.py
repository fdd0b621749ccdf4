"""The generation rules: when each fires, and what it adds to a space.

They are those of Heron (ASPLOS 2023, section 4.1). A rule that does not fire on a layer says why;
some fire on no layer of VTA, which has one level of memory, and an ALU for every stage that is
computed element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step
from tilefarm.workload import Workload

from compile_worker.draft import Draft
from compile_worker.generated import RuleOutcome
from compile_worker.machines.vta.space.epilogue import (
    bias_scope_steps,
    bias_steps,
    declare_epilogue,
    epilogue_steps,
)
from compile_worker.machines.vta.space.estimate import declare_estimate
from compile_worker.machines.vta.space.gemm import declare_gemm, gemm_steps
from compile_worker.machines.vta.space.layer import GemmLayer
from compile_worker.machines.vta.space.operands import declare_operands, operand_steps, scope_steps
from compile_worker.machines.vta.space.tiling import declare_tiling, step_steps, tiling_steps
from compile_worker.machines.vta.space.traffic import declare_traffic

Declare: TypeAlias = Callable[[Draft, GemmLayer, Target], None]
Steps: TypeAlias = Callable[[GemmLayer, Point], Iterator[Step]]
Condition: TypeAlias = Callable[[Workload, Target], str]
"""Why a rule does not fire on a workload; empty where it does."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A generation rule: when it fires, what it does then, and what it adds to a space."""

    name: str
    when: str
    effect: str
    unmet: Condition
    declare: Declare | None = None


def outcomes(workload: Workload, target: Target) -> tuple[RuleOutcome, ...]:
    """What every rule makes of a workload of the accelerator."""
    found = []
    for rule in RULES:
        unmet = rule.unmet(workload, target)
        why = unmet or f"{rule.when}: {rule.effect}"
        found.append(RuleOutcome(rule.name, not unmet, why))
    return tuple(found)


def _always(workload: Workload, target: Target) -> str:
    del workload, target
    return ""


def _no_element_wise_stage_left(workload: Workload, target: Target) -> str:
    del workload, target
    return "every stage that is computed element by element is work of the ALU or of a load's pads"


def _accumulators_are_the_cache(workload: Workload, target: Target) -> str:
    del workload, target
    return "results are written to the accumulator memory: Add-Multi-Scope-SPM gives them theirs"


def _one_level(workload: Workload, target: Target) -> str:
    del workload
    return f"{target.name} has one level of memory on the chip for each operand"


def _other_lanes(workload: Workload, target: Target) -> str:
    lanes = workload.inputs[0].shape[-2:]
    wanted = (target.lanes.batch, target.lanes.block)
    if lanes == wanted:
        return ""
    return f"vectors of {lanes[0]}x{lanes[1]} are not the {wanted[0]}x{wanted[1]} that GEMM takes"


RULES: Final = (
    Rule(
        "Always-Inline",
        "a stage is computed element by element, and by no instruction",
        "it is computed where it is read",
        _no_element_wise_stage_left,
    ),
    Rule(
        "Multi-level-Tiling",
        "a stage uses operands again",
        "outputs are cut into tiles, reductions into steps, and their loops put in order",
        _always,
        declare_tiling,
    ),
    Rule(
        "Add-Cache-Stage",
        "a stage uses operands again and nothing that follows can be fused with it",
        "its result is collected in a cache",
        _accumulators_are_the_cache,
    ),
    Rule(
        "Tensorize",
        "the innermost loops are the lanes of an instruction",
        "GEMM does them, two loops more by itself, and the others as micro-ops",
        _other_lanes,
        declare_gemm,
    ),
    Rule(
        "Add-Multi-Level-SPM",
        "operands pass several levels of memory",
        "each level keeps a part of the next one",
        _one_level,
    ),
    Rule(
        "Add-Multi-Scope-SPM",
        "operands belong into different memories",
        "each gets its memory, a place where it is loaded, and slots",
        _always,
        declare_operands,
    ),
    Rule(
        "User-Defined",
        "sums are brought back to int8",
        "bias, factor, shift and clips run on the accumulators in place, loads may be held",
        _always,
        declare_epilogue,
    ),
)
"""Rules in the order in which their variables build on each other."""


def declare(draft: Draft, layer: GemmLayer, workload: Workload, target: Target) -> None:
    """What the rules that fire add to a space, and what a schedule moves, does and takes."""
    for rule in RULES:
        if rule.declare is not None and not rule.unmet(workload, target):
            rule.declare(draft, layer, target)
    declare_traffic(draft, layer, target)
    declare_estimate(draft, layer, target)


TRACE: Final[tuple[Steps, ...]] = (
    scope_steps,
    bias_scope_steps,
    tiling_steps,
    bias_steps,
    step_steps,
    gemm_steps,
    operand_steps,
    epilogue_steps,
)
"""The rules' steps in the order in which a schedule needs them: memories, tiles, loads, marks."""
