"""What a kernel of the processor will do, counted without running it."""

from __future__ import annotations

from collections.abc import Mapping

from tilefarm.target import Target

from compile_worker.ir.expr import Var
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc, For, If, Seq, Stmt, Store
from compile_worker.passes.averages import mean
from compile_worker.passes.nests import of_kind


def features_of(func: Func, target: Target) -> dict[str, float]:
    """`stores`, the elements that are written, and `param_nbytes`."""
    del target
    extents = {loop.var: loop.extent for loop in of_kind(func.body, For)}
    nbytes = sum(param.nbytes for param in func.params)
    return {"stores": _stores(func.body, extents), "param_nbytes": float(nbytes)}


def _stores(stmt: Stmt, extents: Mapping[Var, int]) -> float:
    """How often one run of a statement writes an element."""
    match stmt:
        case For(extent=extent, body=body):
            return extent * _stores(body, extents)
        case Seq(stmts):
            return sum((_stores(each, extents) for each in stmts), 0.0)
        case Alloc(body=body):
            return _stores(body, extents)
        case If(condition, then, otherwise):
            holds = mean(condition, extents)
            other = 0.0 if otherwise is None else _stores(otherwise, extents)
            return holds * _stores(then, extents) + (1 - holds) * other
        case Store():
            return 1.0
        case _:
            return 0.0
