"""Algebra: canonical sums, divisions that come out even, comparisons that bounds decide.

Index arithmetic is taken not to overflow. Every rule is checked against plain evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import cast, overload

from tilefarm.dtype import DType

from compile_worker.ir.affine import linear, sum_of
from compile_worker.ir.bounds import RANGES, Interval, extents_of, interval, truth
from compile_worker.ir.expr import (
    INDEX,
    Add,
    And,
    Cast,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Logical,
    Max,
    Min,
    Mul,
    Or,
    Select,
    Shr,
    Sub,
    Var,
)
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import NOTHING, Block, For, If, Seq, Stmt, sequence
from compile_worker.ir.visit import map_children

TRUE = Const(True, DType.BOOL)
FALSE = Const(False, DType.BOOL)


@overload
def simplify(node: Expr, extents: Mapping[Var, int] | None = None) -> Expr: ...


@overload
def simplify(node: Stmt, extents: Mapping[Var, int] | None = None) -> Stmt: ...


@overload
def simplify(node: Func, extents: Mapping[Var, int] | None = None) -> Func: ...


def simplify(node: Node, extents: Mapping[Var, int] | None = None) -> Node:
    """`node` with every expression in it simplified.

    `extents` bounds variables of loops around `node`; loops inside are known by themselves. A
    variable with one value becomes 0; its loop stays, as do blocks and marks. `If`s whose condition
    is decided become what they do.
    """
    return _Simplifier({**extents_of(node), **(extents or {})}).node(node)


class _Simplifier:
    """One run: the extents it relies on and what it has worked out already."""

    def __init__(self, extents: Mapping[Var, int]) -> None:
        self._extents = extents
        self._done: dict[Node, Node] = {}

    def node(self, node: Node) -> Node:
        found = self._done.get(node)
        if found is None:
            found = self.expr(node) if isinstance(node, Expr) else self._other(node)
            self._done[node] = found
        return found

    def _expr(self, expr: Expr) -> Expr:
        return cast(Expr, self.node(expr))

    def _other(self, node: Node) -> Node:
        match node:
            case For(var, extent, body, kind, marks):
                inner = cast(Stmt, self.node(body))
                return inner if inner is NOTHING else For(var, extent, inner, kind, marks)
            case Block(name, body, init, reductions, marks):
                new_init = None if init is None else cast(Stmt, self.node(init))
                return Block(name, cast(Stmt, self.node(body)), new_init, reductions, marks)
            case _:
                return _settled(map_children(node, self.node))

    def expr(self, expr: Expr) -> Expr:
        kind = type(expr)
        if kind is Const:
            return expr
        if kind is Var:
            return Const(0, INDEX) if self._extents.get(cast(Var, expr)) == 1 else expr
        if kind in (Add, Sub, Mul) and expr.dtype is INDEX:
            return self._sum(expr)
        rebuilt = map_children(expr, self.node)
        match rebuilt:
            case FloorDiv(left, Const(value=int(divisor), type=DType.INT64)) if divisor > 0:
                return self._divided(left, divisor)
            case FloorMod(left, Const(value=int(divisor), type=DType.INT64)) if divisor > 0:
                return self._remainder(left, divisor)
            case Min(left, right) | Max(left, right) if not rebuilt.dtype.is_float:
                return self._extreme(rebuilt, left, right)
            case Select(condition, then, otherwise):
                return self._chosen(condition, then, otherwise)
            case Logical():
                return self._condition(rebuilt)
            case _:
                return folded(rebuilt)

    def _sum(self, expr: Expr) -> Expr:
        terms, constant = linear(expr, self._term)
        return sum_of(rejoined(terms), constant)

    def _term(self, term: Expr) -> Expr:
        """A term of a sum; the product of two sums is not itself one."""
        if type(term) is Mul:
            return Mul(self._expr(term.left), self._expr(term.right))
        return self._expr(term)

    def _split(self, left: Expr, divisor: int) -> tuple[dict[Expr, int], dict[Expr, int], int]:
        """Terms of `left` that the divisor divides (already divided), the others, the constant."""
        terms, constant = linear(left)
        even = {term: factor // divisor for term, factor in terms.items() if factor % divisor == 0}
        odd = {term: factor for term, factor in terms.items() if factor % divisor}
        return even, odd, constant

    def _divided(self, left: Expr, divisor: int) -> Expr:
        """(q*d + r) // d = q + r // d, and r // d is a constant when bounds say so."""
        even, odd, constant = self._split(left, divisor)
        whole, rest = divmod(constant, divisor)
        low, high = self._range(odd, rest)
        if low // divisor == high // divisor:
            return sum_of(even, whole + low // divisor)
        atom = _smaller_division(odd, rest, divisor)
        even[atom] = even.get(atom, 0) + 1
        return sum_of(rejoined(even), whole)

    def _remainder(self, left: Expr, divisor: int) -> Expr:
        """(q*d + r) % d = r % d, and r % d = r - k*d when bounds say that r // d = k."""
        _, odd, constant = self._split(left, divisor)
        rest = constant % divisor
        for terms in ({t: f % divisor for t, f in odd.items()}, odd):
            low, high = self._range(terms, rest)
            if low // divisor == high // divisor:
                return sum_of(terms, rest - low // divisor * divisor)
        return _smaller_remainder(odd, rest, divisor)

    def _range(self, terms: Mapping[Expr, int], constant: int) -> Interval:
        low = high = constant
        for term, factor in terms.items():
            a, b = interval(term, self._extents)
            low += min(a * factor, b * factor)
            high += max(a * factor, b * factor)
        return Interval(low, high)

    def _extreme(self, expr: Min | Max, left: Expr, right: Expr) -> Expr:
        """min(a, b) = a when a <= b always."""
        if left is right:
            return left
        if expr.dtype is INDEX:
            terms, constant = linear(Sub(left, right))
            low, high = self._range(terms, constant)
        else:
            a, b = interval(left, self._extents), interval(right, self._extents)
            low, high = a.low - b.high, a.high - b.low
        if high <= 0:
            return left if type(expr) is Min else right
        if low >= 0:
            return right if type(expr) is Min else left
        return expr

    def _chosen(self, condition: Expr, then: Expr, otherwise: Expr) -> Expr:
        """Selecting between equals, or with a known condition, is no choice."""
        known = truth(condition, self._extents)
        if known is None and then is not otherwise:
            return Select(condition, then, otherwise)
        return otherwise if known is False else then

    def _condition(self, expr: Logical) -> Expr:
        known = truth(expr, self._extents)
        if known is not None:
            return TRUE if known else FALSE
        match expr:
            case And(left, right) | Or(left, right):
                drop = TRUE if type(expr) is And else FALSE
                if left is right or right is self._constant(drop, right):
                    return left
                if left is self._constant(drop, left):
                    return right
        return expr

    def _constant(self, wanted: Const, expr: Expr) -> Expr | None:
        """`expr` itself if it always has the value `wanted`."""
        known = truth(expr, self._extents)
        return expr if known is not None and known == wanted.value else None


def rejoined(terms: Mapping[Expr, int]) -> dict[Expr, int]:
    """(x // a)*(a*k) + (x % a)*k = x*k, which undoes a split of x."""
    new = dict(terms)
    for term, factor in terms.items():
        match term:
            case FloorMod(x, Const(value=int(a))):
                quotient = FloorDiv(x, Const(a, INDEX))
                if a > 0 and new.get(quotient) == factor * a and new.get(term) == factor:
                    del new[quotient], new[term]
                    inner, constant = linear(x)
                    if constant:
                        return dict(terms)
                    for each, times in inner.items():
                        new[each] = new.get(each, 0) + times * factor
    return _with_joined_digits({term: factor for term, factor in new.items() if factor})


def _with_joined_digits(terms: dict[Expr, int]) -> dict[Expr, int]:
    """((x // a) % b)*(a*k) + (x % a)*k = (x % (a*b))*k: two digits of x are one larger one."""
    for term, factor in terms.items():
        match term:
            case FloorMod(FloorDiv(x, Const(value=int(a))), Const(value=int(b))) if a > 0 and b > 0:
                low = FloorMod(x, Const(a, INDEX))
                if terms.get(low, 0) * a == factor:
                    rest = {t: f for t, f in terms.items() if t is not low and t is not term}
                    digit = FloorMod(x, Const(a * b, INDEX))
                    rest[digit] = rest.get(digit, 0) + factor // a
                    return rejoined(rest)
    return terms


def _smaller_division(terms: Mapping[Expr, int], constant: int, divisor: int) -> Expr:
    """(g*y + r) // (g*d) = (y + r // g) // d, and (x // a) // b = x // (a*b)."""
    common = gcd(divisor, *terms.values())
    new = {term: factor // common for term, factor in terms.items()}
    constant, divisor = constant // common, divisor // common
    if constant == 0 and list(new.values()) == [1]:
        (only,) = new
        match only:
            case FloorDiv(x, Const(value=int(a))) if a > 0:
                return FloorDiv(x, Const(a * divisor, INDEX))
    return FloorDiv(sum_of(new, constant), Const(divisor, INDEX))


def _smaller_remainder(terms: Mapping[Expr, int], constant: int, divisor: int) -> Expr:
    """(g*y + g*r) % (g*d) = g * ((y + r) % d), and (x % (a*b)) % b = x % b."""
    common = gcd(divisor, constant, *terms.values())
    new = {term: factor // common for term, factor in terms.items()}
    constant, divisor = constant // common, divisor // common
    rest: Expr = FloorMod(sum_of(new, constant), Const(divisor, INDEX))
    if constant == 0 and list(new.values()) == [1]:
        (only,) = new
        match only:
            case FloorMod(x, Const(value=int(a))) if a > 0 and a % divisor == 0:
                rest = FloorMod(x, Const(divisor, INDEX))
    return sum_of({rest: common})


def _settled(node: Node) -> Node:
    """An `If` with a constant condition is one of its branches, or nothing."""
    match node:
        case If(Const(value=value), then, otherwise):
            return then if value else NOTHING if otherwise is None else otherwise
        case Seq(stmts):
            return sequence(stmts)
        case _:
            return node


def wrapped(value: int, dtype: DType) -> int:
    """The value that an integer type holds when it is given `value`: modulo its width."""
    low, high = RANGES[dtype]
    return (value - low) % (high - low + 1) + low


def folded(expr: Expr) -> Expr:
    """Data arithmetic whose result is plain to see."""
    match expr:
        case Cast(dtype, value) if value.dtype is dtype:
            return value  # T(x: T) = x
        case Cast(dtype, Const(value=int(value))) if dtype.is_integer:
            return Const(wrapped(value, dtype), dtype)  # T(c)
        case Add(x, Const(value=0)) | Add(Const(value=0), x) if x.dtype.is_integer:
            return x  # x + 0 = x
        case Sub(x, Const(value=0)) | Shr(x, Const(value=0)) if x.dtype.is_integer:
            return x  # x - 0 = x >> 0 = x
        case Mul(x, Const(value=1)) | Mul(Const(value=1), x) if x.dtype.is_integer:
            return x  # x * 1 = x
        case Mul(_, Const(value=0) as zero) | Mul(Const(value=0) as zero, _) if (
            zero.dtype.is_integer
        ):
            return zero  # x * 0 = 0
        case Add(Const(value=int(a)), Const(value=int(b))):
            return Const(wrapped(a + b, expr.dtype), expr.dtype)
        case Sub(Const(value=int(a)), Const(value=int(b))):
            return Const(wrapped(a - b, expr.dtype), expr.dtype)
        case Mul(Const(value=int(a)), Const(value=int(b))):
            return Const(wrapped(a * b, expr.dtype), expr.dtype)
        case _:
            return expr
