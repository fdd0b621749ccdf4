"""Reads the text that `printer` writes: `parse(show(f)) is f`.

Lines are statements; what is on them follows Python's grammar, so Python's own parser reads it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast

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
from compile_worker.ir.func import Func
from compile_worker.ir.printer import DMA_PADS, DMA_SHAPE, INDENT, LITERALS
from compile_worker.ir.stmt import (
    NOTHING,
    Alloc,
    Block,
    Dma,
    For,
    HardwareLoop,
    If,
    LoopKind,
    Mark,
    MicroKernel,
    MicroOp,
    Module,
    Pop,
    Push,
    Ref,
    Stmt,
    Store,
    Synchronize,
    sequence,
)

_T = TypeVar("_T")


class ParseError(TilefarmError):
    """The text is not IR: which line, and why."""


_TYPES: Final[Mapping[str, DType]] = {dtype.value: dtype for dtype in DType}
_LITERALS: Final[Mapping[str, DType]] = {name: dtype for dtype, name in LITERALS.items()}
_LOOPS: Final[Mapping[str, LoopKind]] = {kind.value: kind for kind in LoopKind}

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

_WORD: Final = r'[A-Za-z_][\w.-]*|"(?:[^"\\]|\\.)*"'
_MARKS: Final = r"(?: \{(?P<marks>.*)\})?"
_FUNC: Final = re.compile(rf"func (?P<name>{_WORD}){_MARKS}")
_BUFFER: Final = r"(?P<name>\w+): (?P<type>\w+)\[(?P<shape>[\d, ]*)\] (?P<scope>\w+)"
_PARAM: Final = re.compile(rf"param {_BUFFER}")
_ALLOC: Final = re.compile(rf"alloc {_BUFFER}{_MARKS}(?P<colon>:?)")
_FOR: Final = re.compile(rf"(?P<kind>{'|'.join(_LOOPS)}) (?P<var>\w+) in (?P<extent>\d+){_MARKS}")
_BLOCK: Final = re.compile(rf"block (?P<name>\w+)(?: over (?P<over>\w+(?:, \w+)*))?{_MARKS}")
_MARK: Final = re.compile(rf"(?P<key>\w+)=(?:(?P<number>-?\d+)|(?P<word>{_WORD}))(?:, )?")


def parse(text: str) -> Func:
    """The function that `text` describes.

    Raises:
        ParseError: the text is not what `show` writes for a function.
    """
    return _Parser(_split(text)).function()


def parse_expr(text: str, buffers: Mapping[str, Buffer] | None = None) -> Expr:
    """The expression that `text` describes; names in `buffers` are buffers, others variables."""
    return _Expressions(dict(buffers or {})).read(text)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of text: its number, its depth in indentations, what is on it."""

    number: int
    depth: int
    text: str


def _split(text: str) -> list[_Line]:
    lines = []
    for number, raw in enumerate(text.splitlines(), 1):
        stripped = raw.strip(" ")
        if stripped:
            lines.append(_Line(number, (len(raw) - len(raw.lstrip(" "))) // len(INDENT), stripped))
    return lines


@dataclass(slots=True)
class _Parser:
    """Reads lines from the front; keeps the buffers that are in scope."""

    lines: list[_Line]
    at: int = 0
    buffers: dict[str, Buffer] = field(default_factory=dict)

    def function(self) -> Func:
        head = self._match(_FUNC)
        params = []
        while self._peek().text.startswith("param "):
            params.append(self._buffer(self._match(_PARAM)))
        body = self._block(0)
        if self.at < len(self.lines):
            raise self._error("does not belong to the function")
        return Func(_unquoted(head["name"]), tuple(params), body, _marks(head["marks"]))

    def _peek(self) -> _Line:
        if self.at >= len(self.lines):
            raise ParseError("the text ends too early")
        return self.lines[self.at]

    def _next(self) -> _Line:
        line = self._peek()
        self.at += 1
        return line

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.fullmatch(self._peek().text)
        if found is None:
            raise self._error("cannot be understood")
        self.at += 1
        return found

    def _error(self, why: str) -> ParseError:
        line = self.lines[min(self.at, len(self.lines) - 1)]
        return ParseError(f"line {line.number} {why}: {line.text[:80]}")

    def _buffer(self, found: re.Match[str]) -> Buffer:
        shape = tuple(int(extent) for extent in found["shape"].split(", ") if extent)
        buffer = Buffer(found["name"], shape, _TYPES[found["type"]], found["scope"])
        self.buffers[buffer.name] = buffer
        return buffer

    def _here(self, depth: int) -> bool:
        return self.at < len(self.lines) and self.lines[self.at].depth >= depth

    def _block(self, depth: int) -> Stmt:
        """All statements from here on that are this deep, as one."""
        stmts: list[Stmt] = []
        while self._here(depth):
            line = self._peek()
            if line.depth != depth:
                raise self._error("is indented too far")
            if line.text in ("else", "init"):
                break
            stmts.append(self._statement(line, depth))
        if not stmts:
            raise self._error("is where a statement should be")
        return stmts[0] if len(stmts) == 1 else sequence(stmts)

    def _statement(self, line: _Line, depth: int) -> Stmt:
        word = line.text.split(" ", 1)[0]
        if word in _LOOPS:
            return self._loop(depth)
        if word == "if":
            return self._branch(depth)
        if word == "block":
            return self._work(depth)
        if word == "alloc":
            return self._allocation(depth)
        return self._simple()

    def _loop(self, depth: int) -> Stmt:
        head = self._match(_FOR)
        body = self._block(depth + 1)
        kind, marks = _LOOPS[head["kind"]], _marks(head["marks"])
        return For(Var(head["var"]), int(head["extent"]), body, kind, marks)

    def _branch(self, depth: int) -> Stmt:
        condition = self._expr(self._next().text.removeprefix("if "))
        then = self._block(depth + 1)
        if self._here(depth) and self._peek().text == "else":
            self.at += 1
            return If(condition, then, self._block(depth + 1))
        return If(condition, then)

    def _work(self, depth: int) -> Stmt:
        head = self._match(_BLOCK)
        init = None
        if self._peek().text == "init":
            self.at += 1
            init = self._block(depth + 2)
        over = tuple(Var(name) for name in (head["over"] or "").split(", ") if name)
        body = self._block(depth + 1)
        return Block(head["name"], body, init, over, _marks(head["marks"]))

    def _allocation(self, depth: int) -> Stmt:
        head = self._match(_ALLOC)
        buffer = self._buffer(head)
        body = self._block(depth + 1 if head["colon"] else depth)
        return Alloc(buffer, body, _marks(head["marks"]))

    def _simple(self) -> Stmt:
        line = self._next()
        try:
            return _Expressions(self.buffers).statement(line.text)
        except (SyntaxError, LookupError, ValueError, TypeError, AttributeError) as error:
            self.at -= 1
            raise self._error(f"is no statement ({error})") from None

    def _expr(self, text: str) -> Expr:
        try:
            return _Expressions(self.buffers).read(text)
        except ParseError:
            self.at -= 1
            raise self._error("has no expression that can be understood") from None


_ZERO: Final = ast.Constant(0)


@dataclass(frozen=True, slots=True)
class _Expressions:
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
                return Call(name, tuple(self.expr(arg) for arg in args), _TYPES[kind])
            case _:
                raise ValueError(f"unknown syntax {type(tree).__name__}")

    def _call(self, name: str, args: list[ast.expr]) -> Expr:
        if name in _LITERALS:
            return Const(_number(args[0]), _LITERALS[name])
        if name in _TYPES:
            return Cast(_TYPES[name], self.expr(args[0]))
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
        imm = int(_number(named["imm"])) if "imm" in named else None
        return MicroKernel(engine, opcode, dst, src, wgt, loops, uops, imm, "reset" in named)

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


def _marks(text: str | None) -> tuple[Mark, ...]:
    return tuple(
        (each["key"], int(each["number"]) if each["number"] else _unquoted(each["word"]))
        for each in _MARK.finditer(text or "")
    )


def _unquoted(word: str) -> str:
    return str(json.loads(word)) if word.startswith('"') else word
