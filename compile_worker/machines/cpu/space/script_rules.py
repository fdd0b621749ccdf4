"""The generation rules on a script: when each fires, and what it adds to a space.

The first two make simple stages of what people write. The others are those of Heron (ASPLOS 2023,
section 4.1), as far as a processor has what they are about: caches stand for scratchpads, dot
products for a matrix unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from tilefarm.errors import SettingsError

from compile_worker.machines.cpu.space.script_context import ScriptContext, ScriptRule
from compile_worker.machines.cpu.space.script_loads import (
    CACHE_NBYTES,
    declare_loads,
    staged_operands,
)
from compile_worker.machines.cpu.space.script_places import declare_places
from compile_worker.machines.cpu.space.script_tiling import declare_tiling
from compile_worker.machines.cpu.space.script_trace import declare_dots


def _no(step: str, why: str) -> Callable[[ScriptContext], str]:
    """Why a primitive that simplifies did nothing; empty where it did."""
    return lambda context: "" if any(s.primitive == step for s in context.simplified) else why


def _nothing_inlined(context: ScriptContext) -> str:
    return "" if context.inlined else "no stage before the last one is computed element by element"


def _in_any_order(context: ScriptContext) -> str:
    del context
    return "elements of the result can be computed in any order"


def _always(context: ScriptContext) -> str:
    del context
    return ""


def _no_sums_at_the_end(context: ScriptContext) -> str:
    if context.stages.has_cache:
        return ""
    return "the last stage is computed element by element, and sums where a tile of it needs them"


def _no_dot_products(context: ScriptContext) -> str:
    if not context.isa.dot:
        return "the processor has no dot products"
    return "" if context.has_dots else "no stage sums products of 8 bits that lie side by side"


def _no_operand_to_stage(context: ScriptContext) -> str:
    if staged_operands(context):
        return ""
    return f"no operand of more than {CACHE_NBYTES} bytes is read again by the sums alone"


def _one_scope(context: ScriptContext) -> str:
    del context
    return "all operands are in the memory that a processor has"


LOCKSTEP: Final = "Lockstep"
"""The rule that makes a space by itself, see `script_lockstep`."""

RULES: Final[tuple[ScriptRule, ...]] = (
    ScriptRule(
        name="If-Conversion",
        when="a condition is around stores alone",
        effect="it becomes a choice of what is stored",
        unmet=_no("if_convert", "no stage has conditions around stores alone"),
        simplifies="if_convert",
    ),
    ScriptRule(
        name="Distribute-Loops",
        when="a stage is several statements in loops whose iterations need not one another",
        effect="each is a stage in loops of its own",
        unmet=_no("distribute", "no stage is several statements that can be apart"),
        simplifies="distribute",
    ),
    ScriptRule(
        name=LOCKSTEP,
        when="elements of the result need one another, and rows or columns of it do not",
        effect="some of these are done side by side, and nothing else is chosen",
        unmet=_in_any_order,
    ),
    ScriptRule(
        name="Always-Inline",
        when="a stage is computed element by element, and as fast where it is read",
        effect="it is computed there",
        unmet=_nothing_inlined,
    ),
    ScriptRule(
        name="Multi-level-Tiling",
        when="elements of the result can be computed in any order",
        effect="they are cut into tiles and blocks, with vectors along one axis",
        unmet=_always,
        declare=declare_tiling,
    ),
    ScriptRule(
        name="Add-Cache-Stage",
        when="the last stage reduces, and nothing follows that it could be fused with",
        effect="its sums grow in a cache, a tile or a block of them at a time",
        unmet=_no_sums_at_the_end,
    ),
    ScriptRule(
        name="Place-Stages",
        when="a stage is read by others",
        effect="it is computed before the tiles, or for each, or for each block",
        unmet=_always,
        declare=declare_places,
    ),
    ScriptRule(
        name="Tensorize",
        when="sums of products of 8 bits, side by side",
        effect="dot products of the processor do them",
        unmet=_no_dot_products,
        declare=declare_dots,
    ),
    ScriptRule(
        name="Add-Multi-Level-SPM",
        when="operands are read again, and pass several caches",
        effect="each gets a copy for a tile, one for a block, both, or none",
        unmet=_no_operand_to_stage,
        declare=declare_loads,
    ),
    ScriptRule(
        name="Add-Multi-Scope-SPM",
        when="operands belong into different memories",
        effect="each gets its memory",
        unmet=_one_scope,
    ),
)
"""Rules in the order in which their variables build on each other."""

SIMPLIFYING: Final = tuple(rule.simplifies for rule in RULES if rule.simplifies)
"""Primitives that make simple stages of what people write, in the order in which they are tried."""

_of_users: list[ScriptRule] = []


def with_rules_of_users() -> tuple[ScriptRule, ...]:
    """All rules of this process: those of files that it was told to load come last."""
    return (*RULES, *_of_users)


def set_rules_of_users(rules: Iterable[ScriptRule]) -> None:
    """These take part from now on, in this process, and no others.

    Raises:
        SettingsError: two rules have one name.
    """
    chosen = list(rules)
    names = [each.name for each in (*RULES, *chosen)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingsError(f"--plugin: there already is a rule {twice}", "give it another name")
    _of_users[:] = chosen
