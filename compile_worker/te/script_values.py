"""Expressions of scripts: Python's syntax trees as IR, with types checked where they meet."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Final, TypeAlias

from tilefarm.dtype import DType
from tilefarm.plural import plural

from compile_worker.ir.expr import (
    INDEX,
    Add,
    And,
    Buffer,
    Call,
    Cast,
    Const,
    Div,
    Eq,
    Expr,
    FloorDiv,
    FloorMod,
    Le,
    Load,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Or,
    Select,
    Shr,
    Sub,
)
from compile_worker.ir.stmt import Store
from compile_worker.te.extremes import maximum, minimum
from compile_worker.te.script_errors import ScriptError, ScriptSource

Number: TypeAlias = "int | float | bool"
Value: TypeAlias = "Expr | int | float | bool"
"""An expression, or a number that takes the type of what it meets."""

TYPES: Final[Mapping[str, DType]] = {
    dtype.value: dtype for dtype in DType if dtype is not DType.BOOL
}

_Operator: TypeAlias = tuple[Callable[[Expr, Expr], Expr], Callable[[Number, Number], Number]]

OPERATORS: Final[Mapping[type[ast.operator], _Operator]] = {
    ast.Add: (Add, operator.add),
    ast.Sub: (Sub, operator.sub),
    ast.Mult: (Mul, operator.mul),
    ast.Div: (Div, operator.truediv),
    ast.FloorDiv: (FloorDiv, operator.floordiv),
    ast.Mod: (FloorMod, operator.mod),
    ast.RShift: (Shr, lambda a, b: int(a) >> int(b)),
}
_COMPARISONS: Final[Mapping[type[ast.cmpop], _Operator]] = {
    ast.Lt: (Lt, operator.lt),
    ast.LtE: (Le, operator.le),
    ast.Gt: (lambda a, b: Lt(b, a), operator.gt),
    ast.GtE: (lambda a, b: Le(b, a), operator.ge),
    ast.Eq: (Eq, operator.eq),
    ast.NotEq: (Ne, operator.ne),
}
_INTEGER_ONLY: Final = (ast.FloorDiv, ast.Mod, ast.RShift)

OF_FLOATS: Final = ("abs", "ceil", "erf", "exp", "floor", "log", "sigmoid", "sqrt", "tanh")
"""Functions of `tilefarm.real` that a script may call."""

FUNCTIONS: Final = ("min", "max", "select", "round_even", *OF_FLOATS, *TYPES)


@dataclass(slots=True)
class ScriptValues:
    """Turns syntax trees into values, given what names stand for.

    `names` maps to numbers, expressions, and buffers. `places` remembers where each access was
    written.
    """

    source: ScriptSource
    names: dict[str, object]
    places: dict[Load | Store, ast.AST] = field(default_factory=dict)

    def value(self, tree: ast.expr) -> Value:
        match tree:
            case ast.Constant(value=bool() | int() | float() as number):
                return number
            case ast.Name(id=name):
                return self._named(tree, name)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(tree, op, self.value(left), self.value(right))
            case ast.UnaryOp():
                return self._unary(tree)
            case ast.Compare():
                return self._comparison(tree)
            case ast.BoolOp(op=op, values=values):
                join = And if isinstance(op, ast.And) else Or
                return reduce(join, [self.condition(each) for each in values])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._select(tree, test, body, orelse)
            case ast.Subscript(value=ast.Attribute(attr="shape")) | ast.Attribute(attr="shape"):
                return self._shape(tree)
            case ast.Subscript():
                return self.element(tree)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._call(tree, name, args)
            case _:
                what = type(tree).__name__
                raise self.error(tree, f"{what} is no expression of a script", _EXPRESSIONS)

    def expr(self, tree: ast.expr, dtype: DType | None = None) -> Expr:
        """The value as an expression, a number being of the given type.

        Raises:
            ScriptError: it is a number and no type is given, or has another type.
        """
        return self.typed(tree, self.value(tree), dtype)

    def typed(self, tree: ast.AST, value: Value, dtype: DType | None) -> Expr:
        """A value as an expression of a type."""
        if isinstance(value, Expr):
            if dtype is not None and value.dtype is not dtype:
                why = f"{value.dtype} where {dtype} should be"
                legal = "a comparison, x != 0" if dtype is DType.BOOL else f"{dtype}(...)"
                raise self.error(tree, why, legal)
            return value
        if dtype is None:
            raise self.error(tree, f"{value} has no type here", f"int32({value}), for example")
        if isinstance(value, float) and not dtype.is_float:
            raise self.error(tree, f"{value} where {dtype} should be", "a whole number")
        return Const(float(value) if dtype.is_float else value, dtype)

    def number(self, tree: ast.expr, what: str) -> int:
        """A whole number that is known before anything runs."""
        found = self.value(tree)
        if type(found) is not int:
            raise self.error(tree, f"{what} must be a known number", "a number, or t.shape[0]")
        return found

    def condition(self, tree: ast.expr) -> Expr:
        """A truth value."""
        return self.expr(tree, DType.BOOL)

    def element(self, tree: ast.Subscript) -> Load:
        """The element of a buffer at some coordinates."""
        found = self.names.get(tree.value.id) if isinstance(tree.value, ast.Name) else None
        if not isinstance(found, Buffer):
            legal = self._known(Buffer)
            raise self.error(tree, "only tensors and buffers have elements", f"one of {legal}")
        items = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
        if len(items) != len(found.shape):
            why = f"{found.name} has {plural(len(found.shape), 'axis', 'axes')}, not {len(items)}"
            raise self.error(
                tree, why, f"{found.name}[{', '.join('ijklmnop'[: len(found.shape)])}]"
            )
        load = Load(found, tuple(self.expr(item, INDEX) for item in items))
        self.places.setdefault(load, tree)
        return load

    def binary(self, tree: ast.AST, op: ast.operator, left: Value, right: Value) -> Value:
        """`left op right`."""
        if type(op) not in OPERATORS:
            why = f"{type(op).__name__} is no operator of a script"
            raise self.error(tree, why, "+ - * / // % >>")
        of_exprs, of_numbers = OPERATORS[type(op)]
        if not isinstance(left, Expr) and not isinstance(right, Expr):
            return of_numbers(left, right)
        a, b = self._alike(tree, left, right)
        if isinstance(op, ast.Div) and not a.dtype.is_float:
            raise self.error(tree, f"/ of {a.dtype}", "// for integers, or float32(...)")
        if isinstance(op, _INTEGER_ONLY) and not a.dtype.is_integer:
            raise self.error(tree, f"// % and >> are for integers, not {a.dtype}", "/ for floats")
        return of_exprs(a, b)

    def error(self, tree: ast.AST, why: str, legal: str) -> ScriptError:
        return self.source.error(tree, why, legal)

    def _named(self, tree: ast.Name, name: str) -> Value:
        found = self.names.get(name)
        if isinstance(found, Expr | int | float):
            return found
        if isinstance(found, Buffer):
            raise self.error(tree, f"{name} is a whole tensor", _element_of(found))
        legal = f"one of {self._known(Expr, int, float)}"
        raise self.error(tree, f"{name} is not known here", legal)

    def _known(self, *kinds: type) -> str:
        found = [name for name, each in self.names.items() if isinstance(each, kinds)]
        return ", ".join(found) or "nothing so far"

    def _alike(self, tree: ast.AST, left: Value, right: Value) -> tuple[Expr, Expr]:
        """Two operands of one type."""
        if not isinstance(left, Expr):
            assert isinstance(right, Expr)
            return self.typed(tree, left, right.dtype), right
        b = right if isinstance(right, Expr) else self.typed(tree, right, left.dtype)
        if left.dtype is not b.dtype:
            why = f"{left.dtype} and {b.dtype} do not mix"
            raise self.error(tree, why, f"{b.dtype}(...) around the first, or {left.dtype}(...)")
        return left, b

    def _unary(self, tree: ast.UnaryOp) -> Value:
        match tree.op:
            case ast.USub():
                inner = self.value(tree.operand)
                if not isinstance(inner, Expr):
                    return -inner
                return Sub(self.typed(tree, 0, inner.dtype), inner)
            case ast.Not():
                return Eq(self.condition(tree.operand), Const(False, DType.BOOL))
            case _:
                why = f"{type(tree.op).__name__} is no operator of a script"
                raise self.error(tree, why, "-x, not x")

    def _comparison(self, tree: ast.Compare) -> Value:
        """One comparison, or a chain of them."""
        values = [self.value(each) for each in (tree.left, *tree.comparators)]
        parts = [
            self._compared(tree, op, a, b)
            for op, a, b in zip(tree.ops, values[:-1], values[1:], strict=True)
        ]
        if len(parts) == 1:
            return parts[0]
        return reduce(And, [self.typed(tree, each, DType.BOOL) for each in parts])

    def _compared(self, tree: ast.AST, op: ast.cmpop, left: Value, right: Value) -> Value:
        if type(op) not in _COMPARISONS:
            why = f"{type(op).__name__} is no comparison of a script"
            raise self.error(tree, why, "< <= > >= == !=")
        of_exprs, of_numbers = _COMPARISONS[type(op)]
        if not isinstance(left, Expr) and not isinstance(right, Expr):
            return of_numbers(left, right)
        return of_exprs(*self._alike(tree, left, right))

    def _select(self, tree: ast.expr, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Value:
        condition = self.value(test)
        if not isinstance(condition, Expr):
            return self.value(body if condition else orelse)
        then, otherwise = self.value(body), self.value(orelse)
        if not isinstance(then, Expr) and not isinstance(otherwise, Expr):
            raise self.error(tree, "neither side has a type", f"int32({then}), for example")
        a, b = self._alike(tree, then, otherwise)
        return Select(self.typed(test, condition, DType.BOOL), a, b)

    def _shape(self, tree: ast.expr) -> int:
        """A known extent: `t.shape[0]`."""
        match tree:
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=name)), slice=ast.Constant(value=int(axis))
            ):
                found = self.names.get(name)
                if isinstance(found, Buffer) and axis < len(found.shape):
                    return found.shape[axis]
        raise self.error(tree, "this is no extent of a tensor", "t.shape[0] and further axes")

    def _call(self, tree: ast.Call, name: str, args: list[ast.expr]) -> Value:
        match name, args:
            case (("min" | "max"), [first, *rest]) if rest:
                pick: Callable[..., Number] = min if name == "min" else max
                found = self.value(first)
                for each in rest:
                    other = self.value(each)
                    if isinstance(found, Expr) or isinstance(other, Expr):
                        found = _extreme(name, *self._alike(tree, found, other))
                    else:
                        found = pick(found, other)
                return found
            case "select", [test, then, otherwise]:
                return self._select(tree, test, then, otherwise)
            case "round_even", [value]:
                inner = self.expr(value, DType.FLOAT32)
                return Call("round_even", (inner,), inner.dtype)
            case function, [value] if function in OF_FLOATS:
                return Call(function, (self.expr(value, DType.FLOAT32),), DType.FLOAT32)
            case kind, [value] if kind in TYPES:
                return self._converted(value, TYPES[kind])
            case _:
                why = f"{name} of {len(args)} is no function of a script"
                raise self.error(tree, why, f"one of {', '.join(FUNCTIONS)}")

    def _converted(self, tree: ast.expr, dtype: DType) -> Expr:
        value = self.value(tree)
        if not isinstance(value, Expr):
            return self.typed(tree, value, dtype)
        if value.dtype is dtype:
            return value
        if value.dtype.is_float and dtype.is_integer:
            value = _without_nan(value, dtype)
        return Cast(dtype, value)


def _extreme(name: str, a: Expr, b: Expr) -> Expr:
    """`min` or `max`: of floats NaN where one of them is."""
    if a.dtype.is_float:
        return minimum(a, b) if name == "min" else maximum(a, b)
    return Min(a, b) if name == "min" else Max(a, b)


def _without_nan(real: Expr, dtype: DType) -> Expr:
    """A float of which an integer is made: NaN is its innermost bound, or the least integer."""
    match real:
        case Call("round_even", (inner,), kind):
            return Call("round_even", (_without_nan(inner, dtype),), kind)
        case Min(Const(), _) | Max(Const(), _):
            return _bounds_behind(real)
        case Const() | Cast():
            return real
    least = 0 if dtype is DType.UINT8 else -(1 << (8 * dtype.nbytes - 1))
    return Max(real, Const(float(least), real.dtype))


def _bounds_behind(real: Expr) -> Expr:
    """With bounds behind what they bound, where they are taken for NaN."""
    match real:
        case Min(Const() as bound, inner) | Max(Const() as bound, inner):
            return type(real)(_bounds_behind(inner), bound)
        case Call("round_even", (inner,), kind):
            return Call("round_even", (_bounds_behind(inner),), kind)
    return real


def _element_of(buffer: Buffer) -> str:
    """How to write an element of a buffer."""
    return f"an element, {buffer.name}[{', '.join('ijklmnop'[: len(buffer.shape)])}]"


_EXPRESSIONS: Final = (
    "numbers, names, elements t[i], t.shape[0], arithmetic, comparisons, and/or/not, x if c else y,"
    f" and calls of {', '.join(FUNCTIONS)}"
)
