"""Expressions and one-line statements, from the syntax trees of Python's own parser."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from tilefarm.dtype import DType
from tilefarm.errors import TilefarmError

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
    Var,
)
from compile_worker.ir.printer import DMA_PADS, DMA_SHAPE, LITERALS
from compile_worker.ir.stmt import (
    NOTHING,
    Dma,
    HardwareLoop,
    MicroKernel,
    MicroOp,
    Module,
    Pop,
    Push,
    Ref,
    Stmt,
    Store,
    Synchronize,
)


class ParseError(TilefarmError):
    """The text is not IR: which line, and why."""


TYPES: Final[Mapping[str, DType]] = {dtype.value: dtype for dtype in DType}
_LITERALS: Final[Mapping[str, DType]] = {name: dtype for dtype, name in LITERALS.items()}

_INFIX: Final[Mapping[type[ast.AST], Callable[[Expr, Expr], Expr]]] = {
    ast.Add: Add,
    ast.Sub: Sub,
    ast.Mult: Mul,
    ast.Div: Div,
    ast.FloorDiv: FloorDiv,
    ast.Mod: FloorMod,
    ast.RShift: Shr,
    ast.Lt: Lt,
    ast.LtE: Le,
    ast.Eq: Eq,
    ast.NotEq: Ne,
    ast.And: And,
    ast.Or: Or,
}

_FUNCTIONS: Final[Mapping[str, Callable[..., Expr]]] = {"min": Min, "max": Max, "select": Select}

_ZERO: Final = ast.Constant(0)


@dataclass(frozen=True, slots=True)
class Syntax:
    """Turns Python's syntax trees into expressions and simple statements."""

    buffers: Mapping[str, Buffer]

    def read(self, text: str) -> Expr:
        try:
            return self.expr(ast.parse(text, mode="eval").body)
        except (SyntaxError, LookupError, ValueError, TypeError, AttributeError) as error:
            raise ParseError(f"no expression ({error}): {text[:80]}") from None

    def statement(self, text: str) -> Stmt:
        match ast.parse(text).body:
            case [ast.Pass()]:
                return NOTHING
            case [ast.Assign(targets=[ast.Subscript() as target], value=value)]:
                place = cast(Load, self.expr(target))
                return Store(place.buffer, place.index, self.expr(value))
            case [ast.Expr(value=ast.Call(func=ast.Name(id=name)) as call)]:
                return self._instruction(name, call)
            case _:
                raise ValueError("not an assignment or an instruction")

    def expr(self, tree: ast.expr) -> Expr:
        match tree:
            case ast.Name(id=name):
                return Var(name)
            case ast.Constant() | ast.UnaryOp():
                return Const(cast(int, _number(tree)), INDEX)
            case ast.BinOp(left=left, op=op, right=right):
                return _INFIX[type(op)](self.expr(left), self.expr(right))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return _INFIX[type(op)](self.expr(left), self.expr(right))
            case ast.BoolOp(op=op, values=[first, *others]):
                found = self.expr(first)
                for each in others:
                    found = _INFIX[type(op)](found, self.expr(each))
                return found
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                items = index.elts if isinstance(index, ast.Tuple) else [index]
                return Load(self.buffers[name], tuple(self.expr(item) for item in items))
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._call(name, args)
            case ast.Call(func=ast.Subscript(ast.Name(id=name), ast.Name(id=kind)), args=args):
                return Call(name, tuple(self.expr(arg) for arg in args), TYPES[kind])
            case _:
                raise ValueError(f"unknown syntax {type(tree).__name__}")

    def _call(self, name: str, args: list[ast.expr]) -> Expr:
        if name in _LITERALS:
            return Const(_number(args[0]), _LITERALS[name])
        if name in TYPES:
            return Cast(TYPES[name], self.expr(args[0]))
        return _FUNCTIONS[name](*(self.expr(arg) for arg in args))

    def _instruction(self, name: str, call: ast.Call) -> Stmt:
        named = {each.arg: each.value for each in call.keywords}
        match name:
            case "push" | "pop":
                source, sink = (Module[cast(ast.Name, arg).id.upper()] for arg in call.args)
                kind: type[Push | Pop] = Push if name == "push" else Pop
                return kind(source, sink)
            case "synchronize":
                return Synchronize()
            case "load" | "store":
                sram, dram = (self._ref(arg) for arg in call.args)
                shape = [self.expr(named[each]) for each in DMA_SHAPE]
                pads = [self.expr(named.get(each, _ZERO)) for each in DMA_PADS]
                return Dma(name, sram, dram, *shape, *pads)
            case _:
                return self._kernel(name, cast(ast.Name, call.args[0]).id, named)

    def _kernel(self, engine: str, opcode: str, named: dict[str | None, ast.expr]) -> Stmt:
        refs = [self._ref(named[each]) if each in named else None for each in ("dst", "src", "wgt")]
        dst, src, wgt = refs
        if dst is None:
            raise ValueError("dst is missing")
        loops = tuple(HardwareLoop(*row) for row in _rows(named["loops"]))
        uops = tuple(MicroOp(*row) for row in _rows(named["uops"]))
        imm = self._immediate(named["imm"]) if "imm" in named else None
        return MicroKernel(engine, opcode, dst, src, wgt, loops, uops, imm, "reset" in named)

    def _immediate(self, tree: ast.expr) -> int | Expr:
        """A number as it is written, or what the host reads when it queues the instruction."""
        return self.expr(tree) if isinstance(tree, ast.Subscript) else int(_number(tree))

    def _ref(self, tree: ast.expr) -> Ref:
        match tree:
            case ast.BinOp(left=ast.Name(id=name), op=ast.MatMult(), right=element):
                return Ref(self.buffers[name], self.expr(element))
            case _:
                raise ValueError("not a place in a buffer")


def _number(tree: ast.expr) -> int | float:
    """A literal: an integer, a float, a truth value, an infinity or not-a-number."""
    match tree:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand)
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
        case _:
            raise ValueError("not a number")


def _rows(tree: ast.expr) -> list[tuple[int, ...]]:
    return [tuple(row) for row in ast.literal_eval(tree)]
