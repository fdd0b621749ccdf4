"""The generation rules: each adds variables and constraints, and turns their values into steps.

The rules follow Heron (ASPLOS 2023, section 4.1): Multi-level-Tiling, Tensorize,
Add-Multi-Scope-SPM and a user-defined one for the epilogue. All of them fire on every layer that
`layer_of` knows. Always-Inline has nothing to do here: every element-wise stage is work of the ALU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from tilefarm.space import Point
from tilefarm.target import Target
from tilefarm.trace import Step

from compile_worker.space.constraints import Draft
from compile_worker.space.epilogue import bias_scope_steps, declare_epilogue, epilogue_steps
from compile_worker.space.gemm import declare_gemm, gemm_steps
from compile_worker.space.layer import Layer
from compile_worker.space.operands import declare_operands, operand_steps, scope_steps
from compile_worker.space.tiling import declare_tiling, tiling_steps
from compile_worker.space.traffic import declare_traffic

Declare: TypeAlias = Callable[[Draft, Layer, Target], None]
Steps: TypeAlias = Callable[[Layer, Point], Iterator[Step]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A generation rule by name, and the variables and constraints that it adds to a space."""

    name: str
    declare: Declare


RULES: Final = (
    Rule("multi-level-tiling", declare_tiling),
    Rule("tensorize", declare_gemm),
    Rule("multi-scope-spm", declare_operands),
    Rule("requantizing-epilogue", declare_epilogue),
    Rule("traffic", declare_traffic),
)
"""Rules in the order in which their variables build on each other."""

TRACE: Final[tuple[Steps, ...]] = (
    scope_steps,
    bias_scope_steps,
    tiling_steps,
    gemm_steps,
    operand_steps,
    epilogue_steps,
)
"""The rules' steps in the order in which a schedule needs them: memories, tiles, loads, marks."""
