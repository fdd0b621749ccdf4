"""The start of a reduction as a nest of its own: what the schedule primitive and the pass share."""

from __future__ import annotations

from collections.abc import Sequence

from compile_worker.ir.annotations import TENSORIZE
from compile_worker.ir.expr import Const, Expr, Var, index
from compile_worker.ir.simplify import TRUE, simplify
from compile_worker.ir.stmt import Block, For, If, Mark, Stmt, Store
from compile_worker.ir.visit import substitute


def start_of(block: Block, steps: Sequence[Stmt]) -> Stmt:
    """The nest that starts what `block` reduces, in a block `<name>_init`.

    `steps` are the statements from the place where it starts down to the block. Loops over which
    it does not reduce are repeated as `<loop>_init`, guards as far as they depend on those.

        for i: if i < 10: for r: block s: ...   ->   for i_init: if i_init < 10: block s_init: ...

    A guard that depends on what is reduced holds in the first iteration, if in any.
    """
    assert block.init is not None
    spatial = [each for each in steps if isinstance(each, For) and each.var not in block.reductions]
    fresh = {loop.var: Var(f"{loop.var.name}_init") for loop in spatial}
    init = substitute(block.init, fresh)
    nest: Stmt = Block(f"{block.name}_init", init, marks=_marks(block, init))
    values: dict[Var, Expr] = {**{var: index(0) for var in block.reductions}, **fresh}
    for step in reversed(steps):
        if isinstance(step, For) and step.var in fresh:
            nest = For(fresh[step.var], step.extent, nest, step.kind)
        elif isinstance(step, If):
            condition = simplify(substitute(step.condition, values))
            nest = nest if condition is TRUE else If(condition, nest)
    return nest


def _marks(block: Block, init: Stmt) -> tuple[Mark, ...]:
    """GEMM can start from zero by itself."""
    is_zero = isinstance(init, Store) and isinstance(init.value, Const)
    return (TENSORIZE("reset"),) if is_zero and TENSORIZE.of(block) == "gemm" else ()
