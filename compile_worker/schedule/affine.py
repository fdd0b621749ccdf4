"""Affine form of index expressions."""

from __future__ import annotations

from dataclasses import dataclass

from compile_worker.ir.expr import Add, Const, Expr, Mul, Sub, Var, index


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + Σ terms[v] * v"""

    terms: dict[Var, int]
    constant: int


def as_affine(expr: Expr) -> Affine | None:
    """`expr` as a sum of multiples of variables, if it is one."""
    terms: dict[Var, int] = {}
    constant = 0
    stack = [(expr, 1)]
    while stack:
        e, k = stack.pop()
        match e:
            case Var():
                terms[e] = terms.get(e, 0) + k
            case Const(value=v):
                constant += k * int(v)
            case Add(left=a, right=b):
                stack += [(a, k), (b, k)]
            case Sub(left=a, right=b):
                stack += [(a, k), (b, -k)]
            case Mul(left=a, right=Const(value=c)) | Mul(left=Const(value=c), right=a):
                stack.append((a, k * int(c)))
            case _:
                return None
    return Affine({v: c for v, c in terms.items() if c}, constant)


def from_affine(form: Affine) -> Expr:
    """The expression of an affine form."""
    total: Expr | None = None
    for v, c in form.terms.items():
        term: Expr = v if c == 1 else v * c
        total = term if total is None else total + term
    if total is None:
        return index(form.constant)
    return total + form.constant if form.constant else total
