"""What must hold of a function at each stage of lowering: one rule a line, in one table.

A pass that leaves something else has a bug; `verify` names the rule that is broken and where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

from tilefarm.errors import TilefarmError

from compile_worker.ir import rules_form as form
from compile_worker.ir import rules_types as types
from compile_worker.ir.accesses import in_bounds
from compile_worker.ir.findings import Finding
from compile_worker.ir.func import Func
from compile_worker.ir.instructions import misplaced
from compile_worker.ir.node import Node
from compile_worker.ir.printer import show

_EXCERPT_LINES: Final = 6


class Stage(IntEnum):
    """How far a function is on its way from tensor expressions to instructions."""

    NEST = 0
    """As tensor expressions give it: one loop nest for each stage."""
    SCHEDULED = 1
    """Loops tiled and moved, blocks still name what a nest computes."""
    DECOMPOSED = 2
    """Reductions have been taken apart: no block initialises."""
    EXPLICIT = 3
    """Only copies and micro-op kernels touch on-chip memory."""
    PLACED = 4
    """On-chip buffers have their place, tokens order who uses it."""
    FLAT = 5
    """No blocks are left, and host accesses have one index."""


class VerifyError(TilefarmError):
    """A function breaks a rule of its stage: which rule, why, and the text of the place."""

    def __init__(self, rule: str, why: str, excerpt: str = "") -> None:
        Exception.__init__(self, rule, why, excerpt)

    @property
    def rule(self) -> str:
        return str(self.args[0])

    @property
    def what(self) -> str:
        rule, why, excerpt = self.args
        return f"{rule}: {why}" + (f"\n{excerpt}" if excerpt else "")

    @property
    def hint(self) -> str:
        return ""


Check: TypeAlias = Callable[[Func], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class StageRule:
    """A check and the stages that it holds for."""

    name: str
    check: Check
    first: Stage = Stage.NEST
    last: Stage = Stage.FLAT


def verify(func: Func, stage: Stage) -> None:
    """Checks every rule of a stage.

    Raises:
        VerifyError: the first finding, in the order of RULES.
    """
    for rule in RULES:
        if rule.first <= stage <= rule.last:
            for why, where in rule.check(func):
                raise VerifyError(rule.name, why, _excerpt(where))


def _excerpt(where: Node) -> str:
    lines = show(where).splitlines()
    return "\n".join([*lines[:_EXCERPT_LINES], *(["..."] if len(lines) > _EXCERPT_LINES else [])])


RULES: Final[Iterable[StageRule]] = (
    StageRule("sequences are flat", form.sequences_flat),
    StageRule("names are unique", form.unique_names),
    StageRule("every block has its own name", form.one_block_each, last=Stage.SCHEDULED),
    StageRule("every extent is positive", form.extents_positive),
    StageRule("variables are bound", form.variables_bound),
    StageRule("buffers are declared", form.buffers_declared),
    StageRule("ranks agree", types.ranks),
    StageRule("types agree", types.types_agree),
    StageRule("scopes are legal", types.scopes_legal),
    StageRule("accesses are in bounds", in_bounds),
    StageRule("inputs are read, outputs written", form.inputs_untouched),
    StageRule("a nest is loops around a block", form.plain_nests, last=Stage.NEST),
    StageRule("work is blocks of the host", form.host_only, last=Stage.SCHEDULED),
    StageRule("reductions start what they sum", form.starts_own),
    StageRule("what is done at once is independent", form.at_once),
    StageRule("no reduction initialises", form.no_init, Stage.DECOMPOSED),
    StageRule("the host stays off the chip", types.host_off_chip, Stage.EXPLICIT),
    StageRule("operands are in their memories", types.refs_in_scope),
    StageRule("instructions stay in their buffers", misplaced),
    StageRule("on-chip buffers are placed", form.bases_given, Stage.PLACED),
    StageRule("the accelerator is waited for", form.ends_synchronized, Stage.PLACED),
    StageRule("no blocks are left", form.no_blocks, Stage.FLAT),
    StageRule("host buffers are flat", form.flat, Stage.FLAT),
)
"""Every rule, in the order in which a broken one makes the next meaningless."""
