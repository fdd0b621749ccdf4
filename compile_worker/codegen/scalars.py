"""Expressions as LLVM instructions: one-to-one operators are rows of a table.

Integer arithmetic wraps, index arithmetic (int64) never overflows, `select` evaluates both sides
unless one reads memory, which only the chosen side may do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tilefarm.dtype import DType
from tilefarm.real import EXTREMES

from compile_worker.codegen.real_words import called, extreme, is_small, rounded_to_int
from compile_worker.codegen.text import MEMORY_TYPES, VALUE_TYPES, FunctionText, literal
from compile_worker.ir.expr import (
    INDEX,
    Add,
    And,
    Binary,
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
    Logical,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Or,
    Select,
    Shr,
    Sub,
    Var,
)
from compile_worker.ir.intrinsics import intrinsic_of_user
from compile_worker.ir.visit import find

INTEGER: Final[Mapping[type[Expr], str]] = {
    Add: "add",
    Sub: "sub",
    Mul: "mul",
    Shr: "ashr",
    Lt: "icmp slt",
    Le: "icmp sle",
    Eq: "icmp eq",
    Ne: "icmp ne",
}
UNSIGNED: Final[Mapping[type[Expr], str]] = {
    **INTEGER,
    Shr: "lshr",
    Lt: "icmp ult",
    Le: "icmp ule",
}
INDEXING: Final[Mapping[type[Expr], str]] = {
    **INTEGER,
    Add: "add nsw",
    Sub: "sub nsw",
    Mul: "mul nsw",
}
FLOATING: Final[Mapping[type[Expr], str]] = {
    Add: "fadd",
    Sub: "fsub",
    Mul: "fmul",
    Div: "fdiv",
    Lt: "fcmp olt",
    Le: "fcmp ole",
    Eq: "fcmp oeq",
    Ne: "fcmp une",
}
TRUTH: Final[Mapping[type[Expr], str]] = {And: "and", Or: "or", Eq: "icmp eq", Ne: "icmp ne"}


class Scalars:
    """The values that expressions have at the current place of one function.

    `pointers` are base addresses of host buffers. A value is computed once per scope; scopes nest
    as loops and branches do.
    """

    def __init__(self, text: FunctionText, pointers: Mapping[Buffer, str]) -> None:
        self._text = text
        self._pointers = dict(pointers)
        self._scopes: list[dict[Expr, str]] = [{}]

    def bind(self, buffer: Buffer, pointer: str) -> None:
        """Give the base address of one more host buffer."""
        self._pointers[buffer] = pointer

    def enter(self) -> None:
        self._scopes.append({})

    def leave(self) -> None:
        self._scopes.pop()

    def define(self, var: Var, value: str) -> None:
        """The value of a loop variable from here to the end of the scope."""
        self._scopes[-1][var] = value

    def pointer(self, buffer: Buffer) -> str:
        """The base address of a host buffer."""
        return self._pointers[buffer]

    def address(self, buffer: Buffer, index: tuple[Expr, ...], *, inbounds: bool = True) -> str:
        """The address of an element of a host buffer; its index has one dimension.

        Without `inbounds` the element need not exist: it is where others are counted from.
        """
        (at,) = index
        kind, way = MEMORY_TYPES[buffer.dtype], "inbounds " if inbounds else ""
        return self._text.op(
            f"getelementptr {way}{kind}, ptr {self._pointers[buffer]}, i64 {self.value(at)}"
        )

    def value(self, expr: Expr) -> str:
        """The name or literal of an expression's value, computed now if it was not yet."""
        if isinstance(expr, Const):
            return literal(expr.value, expr.type)
        for scope in reversed(self._scopes):
            if expr in scope:
                return scope[expr]
        result = self._compute(expr)
        self._scopes[-1][expr] = result
        return result

    def narrow(self, expr: Expr) -> str:
        """The value of an index expression as i32."""
        if isinstance(expr, Const):
            return str(int(expr.value))
        return self._text.op(f"trunc i64 {self.value(expr)} to i32")

    def kind(self, dtype: DType) -> str:
        """The LLVM type that values of an element type have here."""
        return VALUE_TYPES[dtype]

    def number(self, value: float, dtype: DType) -> str:
        """A constant in LLVM's spelling."""
        return literal(value, dtype)

    def suffix(self, dtype: DType) -> str:
        """What the type is called in the names of LLVM's overloaded intrinsics."""
        return "f32" if dtype.is_float else VALUE_TYPES[dtype]

    def op(self, instruction: str) -> str:
        """Append an instruction with a result; gives the result's name."""
        return self._text.op(instruction)

    def _compute(self, expr: Expr) -> str:
        match expr:
            case Load():
                return self._load(expr)
            case Cast(type=dtype, value=inner):
                return self._cast(inner, dtype)
            case Select():
                return self._select(expr)
            case Call():
                return self._call(expr)
            case FloorDiv() | FloorMod():
                return self._floor(expr)
            case Min() | Max():
                return self._extreme(expr)
            case Binary() | Logical():
                return self._operator(expr)
            case _:
                raise TypeError(f"no machine code for {type(expr).__name__}")

    def _call(self, expr: Call) -> str:
        if (mine := intrinsic_of_user(expr.name)) is not None:
            values = [self.value(each) for each in expr.args]
            dtype = mine.dtype
            return self.op(mine.instruction(self.kind(dtype), self.suffix(dtype), values))
        if expr.name in EXTREMES:
            left, right = map(self.value, expr.args)
            return extreme(self, expr.name, left, right)
        value, *parameters = expr.args
        return called(self, expr.name, self.value(value), parameters)

    def _operator(self, expr: Binary | Logical) -> str:
        rows = _rows(expr.left.dtype)
        left, right = self.value(expr.left), self.value(expr.right)
        kind = self.kind(expr.left.dtype)
        return self._text.op(f"{rows[type(expr)]} {kind} {left}, {right}")

    def _load(self, expr: Load) -> str:
        kind = MEMORY_TYPES[expr.buffer.dtype]
        value = self._text.op(f"load {kind}, ptr {self.address(expr.buffer, expr.index)}")
        if expr.buffer.dtype is DType.BOOL:
            return self._text.op(f"trunc i8 {value} to i1")
        return value

    def _extreme(self, expr: Min | Max) -> str:
        left, right = self.value(expr.left), self.value(expr.right)
        kind, word = self.kind(expr.dtype), "min" if isinstance(expr, Min) else "max"
        if expr.dtype.is_float:
            relation = "olt" if isinstance(expr, Min) else "ogt"
            first = self._text.op(f"fcmp {relation} {kind} {left}, {right}")
            return self.chosen(first, kind, left, right)
        sign = "u" if expr.dtype is DType.UINT8 else "s"
        return self._text.op(
            f"call {kind} @llvm.{sign}{word}.{self.suffix(expr.dtype)}"
            f"({kind} {left}, {kind} {right})"
        )

    def _floor(self, expr: FloorDiv | FloorMod) -> str:
        """Quotient or remainder towards minus infinity, from the machine's, which goes to zero."""
        op, kind = self._text.op, self.kind(expr.dtype)
        if expr.dtype is DType.UINT8:
            operation = "udiv" if isinstance(expr, FloorDiv) else "urem"
            return op(f"{operation} {kind} {self.value(expr.left)}, {self.value(expr.right)}")
        zero, one = self.number(0, expr.dtype), self.number(1, expr.dtype)
        left, right = self.value(expr.left), self.value(expr.right)
        rest = op(f"srem {kind} {left}, {right}")
        signs = op(f"xor {kind} {rest}, {right}")
        differ = op(f"icmp slt {kind} {signs}, {zero}")
        some = op(f"icmp ne {kind} {rest}, {zero}")
        off = op(f"and {self.kind(DType.BOOL)} {differ}, {some}")
        if isinstance(expr, FloorMod):
            fixed = op(f"add {kind} {rest}, {right}")
            return self.chosen(off, kind, fixed, rest)
        quotient = op(f"sdiv {kind} {left}, {right}")
        less = op(f"sub {kind} {quotient}, {one}")
        return self.chosen(off, kind, less, quotient)

    def chosen(self, condition: str, kind: str, then: str, otherwise: str) -> str:
        """The instruction that selects where conditions are values of this writer."""
        choice = f"{self.kind(DType.BOOL)} {condition}"
        return self._text.op(f"select {choice}, {kind} {then}, {kind} {otherwise}")

    def _cast(self, inner: Expr, dtype: DType) -> str:
        match inner:
            case Call("round_even", (small,)) if dtype is DType.INT32 and is_small(small):
                return rounded_to_int(self, self.value(small))
        value, source = self.value(inner), inner.dtype
        have, want = self.kind(source), self.kind(dtype)
        if have == want:
            return value
        return self._text.op(f"{_conversion(source, dtype)} {have} {value} to {want}")

    def _select(self, expr: Select) -> str:
        condition = self.value(expr.condition)
        kind = self.kind(expr.dtype)
        if not reads(expr.then) and not reads(expr.otherwise):
            return self.chosen(condition, kind, self.value(expr.then), self.value(expr.otherwise))
        return self.branched(condition, expr)

    def branched(self, condition: str, expr: Select) -> str:
        """A select of which only the chosen side is computed; the condition is one scalar."""
        text, kind = self._text, self.kind(expr.dtype)
        yes, no, after = text.fresh_label(), text.fresh_label(), text.fresh_label()
        text.branch(condition, yes, no)
        then, then_end = self._arm(yes, expr.then, after)
        otherwise, otherwise_end = self._arm(no, expr.otherwise, after)
        text.begin(after)
        return text.op(f"phi {kind} [ {then}, %{then_end} ], [ {otherwise}, %{otherwise_end} ]")

    def _arm(self, label: str, expr: Expr, after: str) -> tuple[str, str]:
        """One side of a branching select: its value and the block that it ends in."""
        self._text.begin(label)
        self.enter()
        value = self.value(expr)
        self.leave()
        end = self._text.block
        self._text.jump(after)
        return value, end


def _rows(operand: DType) -> Mapping[type[Expr], str]:
    if operand.is_float:
        return FLOATING
    if operand is DType.BOOL:
        return TRUTH
    if operand is DType.UINT8:
        return UNSIGNED
    return INDEXING if operand is INDEX else INTEGER


def _conversion(source: DType, target: DType) -> str:
    unsigned = source in (DType.UINT8, DType.BOOL)
    if target.is_float:
        return "uitofp" if unsigned else "sitofp"
    if source.is_float:
        return "fptoui" if target is DType.UINT8 else "fptosi"
    if target.nbytes < source.nbytes or target is DType.BOOL:
        return "trunc"
    return "zext" if unsigned else "sext"


def reads(expr: Expr) -> bool:
    """Whether the value is partly that of memory."""
    return next(find(expr, Load), None) is not None
