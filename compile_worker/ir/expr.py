"""Expressions: scalars, element reads and the operators between them.

Index arithmetic has dtype INDEX (int64). Integer arithmetic wraps at its width; `Shr` is
arithmetic; `FloorDiv` and `FloorMod` round towards minus infinity, as in Python.
"""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar, Final, TypeAlias

from tilefarm.dtype import DType
from tilefarm.model import RESERVED

from compile_worker.ir.node import Node, node

INDEX: Final = DType.INT64


class Expr(Node):
    """A value. `dtype` is its element type."""

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        raise NotImplementedError(type(self).__name__)

    def __add__(self, other: ExprLike) -> Expr:
        return Add(self, like(other, self))

    def __radd__(self, other: ExprLike) -> Expr:
        return Add(like(other, self), self)

    def __sub__(self, other: ExprLike) -> Expr:
        return Sub(self, like(other, self))

    def __rsub__(self, other: ExprLike) -> Expr:
        return Sub(like(other, self), self)

    def __mul__(self, other: ExprLike) -> Expr:
        return Mul(self, like(other, self))

    def __rmul__(self, other: ExprLike) -> Expr:
        return Mul(like(other, self), self)

    def __truediv__(self, other: ExprLike) -> Expr:
        return Div(self, like(other, self))

    def __floordiv__(self, other: ExprLike) -> Expr:
        return FloorDiv(self, like(other, self))

    def __mod__(self, other: ExprLike) -> Expr:
        return FloorMod(self, like(other, self))

    def __rshift__(self, other: ExprLike) -> Expr:
        return Shr(self, like(other, self))


ExprLike: TypeAlias = Expr | int | float


def like(value: ExprLike, other: Expr) -> Expr:
    """`value` as an expression; a plain number takes the type of `other`."""
    return value if isinstance(value, Expr) else Const(value, other.dtype)


def index(value: ExprLike) -> Expr:
    """`value` as an index expression."""
    return value if isinstance(value, Expr) else Const(value, INDEX)


@node
class Buffer(Node):
    """Typed storage with a static shape, row-major, in one memory.

    `scope` is "dram" (parameters and what the host and the accelerator share), "local" (host
    memory of a CPU kernel), or a memory of the machine. Names are unique in a function.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    scope: str = "dram"

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.nbytes

    @property
    def on_chip(self) -> bool:
        """Whether it is in a memory of the machine's own."""
        return self.scope not in RESERVED

    def __getitem__(self, at: tuple[ExprLike, ...] | ExprLike) -> Load:
        indices = at if isinstance(at, tuple) else (at,)
        return Load(self, tuple(map(index, indices)))


@node
class Var(Expr):
    """A loop variable. Names are unique in a function."""

    name: str

    @property
    def dtype(self) -> DType:
        return INDEX


@node
class Const(Expr):
    """A literal."""

    value: int | float
    type: DType
    is_its_fields: ClassVar[bool] = False

    @classmethod
    def _key(cls, args: tuple[Any, ...]) -> object:
        value, dtype = args  # 1 == True == 1.0 and 0.0 == -0.0, but they are not one literal
        return (cls, type(value), value if type(value) is int else repr(value), dtype._value_)

    @property
    def dtype(self) -> DType:
        return self.type


class Binary(Expr):
    """An operator with two operands of one type, which is also its own."""

    __slots__ = ()
    left: Expr
    right: Expr

    @property
    def dtype(self) -> DType:
        return self.left.dtype


@node
class Add(Binary):
    """left + right; integers wrap."""

    left: Expr
    right: Expr


@node
class Sub(Binary):
    """left - right; integers wrap."""

    left: Expr
    right: Expr


@node
class Mul(Binary):
    """left * right; integers wrap."""

    left: Expr
    right: Expr


@node
class Div(Binary):
    """Division of floats."""

    left: Expr
    right: Expr


@node
class FloorDiv(Binary):
    """Integer division, rounded towards minus infinity."""

    left: Expr
    right: Expr


@node
class FloorMod(Binary):
    """What FloorDiv leaves over; has the sign of `right`."""

    left: Expr
    right: Expr


@node
class Min(Binary):
    """left < right ? left : right, so that `right` is taken where one is no number."""

    left: Expr
    right: Expr


@node
class Max(Binary):
    """left > right ? left : right, so that `right` is taken where one is no number."""

    left: Expr
    right: Expr


@node
class Shr(Binary):
    """Arithmetic shift to the right."""

    left: Expr
    right: Expr


class Logical(Expr):
    """An operator whose result is a truth value."""

    __slots__ = ()
    left: Expr
    right: Expr

    @property
    def dtype(self) -> DType:
        return DType.BOOL


@node
class Lt(Logical):
    """left < right"""

    left: Expr
    right: Expr


@node
class Le(Logical):
    """left <= right"""

    left: Expr
    right: Expr


@node
class Eq(Logical):
    """left == right"""

    left: Expr
    right: Expr


@node
class Ne(Logical):
    """left != right"""

    left: Expr
    right: Expr


@node
class And(Logical):
    """Both hold; both are evaluated."""

    left: Expr
    right: Expr


@node
class Or(Logical):
    """At least one holds; both are evaluated."""

    left: Expr
    right: Expr


@node
class Select(Expr):
    """`then` where the condition holds, `otherwise` elsewhere; only the chosen one is evaluated."""

    condition: Expr
    then: Expr
    otherwise: Expr

    @property
    def dtype(self) -> DType:
        return self.then.dtype


@node
class Cast(Expr):
    """Conversion: integers wrap, integer to float rounds, float to integer truncates."""

    type: DType
    value: Expr

    @property
    def dtype(self) -> DType:
        return self.type


@node
class Load(Expr):
    """The element of `buffer` at `index`; out of bounds is a verifier error, not a trap."""

    buffer: Buffer
    index: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype


@node
class Call(Expr):
    """A pure intrinsic. INTRINSICS in `evaluate` gives their meaning: `round_even` and so on."""

    name: str
    args: tuple[Expr, ...]
    type: DType

    @property
    def dtype(self) -> DType:
        return self.type
