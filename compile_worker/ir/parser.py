"""Reads the text that `printer` writes: `parse(show(f)) is f`.

Lines are statements; what is on them follows Python's grammar, so Python's own parser reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from compile_worker.ir.annotations import WHAT, Marked, find_annotation, names_on
from compile_worker.ir.expr import (
    Buffer,
    Expr,
    Var,
)
from compile_worker.ir.func import Func
from compile_worker.ir.printer import INDENT
from compile_worker.ir.stmt import (
    Alloc,
    Block,
    For,
    If,
    LoopKind,
    Mark,
    Stmt,
    sequence,
)
from compile_worker.ir.syntax import TYPES, ParseError, Syntax

__all__ = ["ParseError", "parse", "parse_expr"]

_LOOPS: Final[Mapping[str, LoopKind]] = {kind.value: kind for kind in LoopKind}

_WORD: Final = r'[A-Za-z_][\w.-]*|"(?:[^"\\]|\\.)*"'
_MARKS: Final = r"(?: \{(?P<marks>.*)\})?"
_FUNC: Final = re.compile(rf"func (?P<name>{_WORD}){_MARKS}")
_BUFFER: Final = r"(?P<name>\w+): (?P<type>\w+)\[(?P<shape>[\d, ]*)\] (?P<scope>\w+)"
_PARAM: Final = re.compile(rf"param {_BUFFER}")
_ALLOC: Final = re.compile(rf"alloc {_BUFFER}{_MARKS}(?P<colon>:?)")
_FOR: Final = re.compile(rf"(?P<kind>{'|'.join(_LOOPS)}) (?P<var>\w+) in (?P<extent>\d+){_MARKS}")
_BLOCK: Final = re.compile(rf"block (?P<name>\w+)(?: over (?P<over>\w+(?:, \w+)*))?{_MARKS}")
_MARK: Final = re.compile(rf"(?P<name>\w+)=(?:(?P<number>-?\d+)|(?P<word>{_WORD}))(?:, )?")


def parse(text: str) -> Func:
    """The function that `text` describes.

    Raises:
        ParseError: the text is not what `show` writes for a function.
    """
    return _Parser(_split(text)).function()


def parse_expr(text: str, buffers: Mapping[str, Buffer] | None = None) -> Expr:
    """The expression that `text` describes; names in `buffers` are buffers, others variables."""
    return Syntax(dict(buffers or {})).read(text)


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
        attrs = self._marks(head, Func)
        params = []
        while self._peek().text.startswith("param "):
            params.append(self._buffer(self._match(_PARAM)))
        body = self._block(0)
        if self.at < len(self.lines):
            raise self._error("does not belong to the function")
        return Func(_unquoted(head["name"]), tuple(params), body, attrs)

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

    def _back(self, why: str) -> ParseError:
        """What is wrong with the line that was read last."""
        self.at -= 1
        return self._error(why)

    def _buffer(self, found: re.Match[str]) -> Buffer:
        shape = tuple(int(extent) for extent in found["shape"].split(", ") if extent)
        buffer = Buffer(found["name"], shape, TYPES[found["type"]], found["scope"])
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
        marks = self._marks(head, For)
        body = self._block(depth + 1)
        return For(Var(head["var"]), int(head["extent"]), body, _LOOPS[head["kind"]], marks)

    def _branch(self, depth: int) -> Stmt:
        condition = self._expr(self._next().text.removeprefix("if "))
        then = self._block(depth + 1)
        if self._here(depth) and self._peek().text == "else":
            self.at += 1
            return If(condition, then, self._block(depth + 1))
        return If(condition, then)

    def _work(self, depth: int) -> Stmt:
        head = self._match(_BLOCK)
        marks = self._marks(head, Block)
        init = None
        if self._peek().text == "init":
            self.at += 1
            init = self._block(depth + 2)
        over = tuple(Var(name) for name in (head["over"] or "").split(", ") if name)
        body = self._block(depth + 1)
        return Block(head["name"], body, init, over, marks)

    def _allocation(self, depth: int) -> Stmt:
        head = self._match(_ALLOC)
        marks = self._marks(head, Alloc)
        buffer = self._buffer(head)
        body = self._block(depth + 1 if head["colon"] else depth)
        return Alloc(buffer, body, marks)

    def _marks(self, head: re.Match[str], on: type[Marked]) -> tuple[Mark, ...]:
        """The marks in the line that was read last."""
        text, at = head["marks"] or "", 0
        marks = []
        while at < len(text):
            found = _MARK.match(text, at)
            if found is None:
                raise self._back("has marks that cannot be understood")
            at = found.end()
            number = found["number"]
            value = int(number) if number else _unquoted(found["word"])
            marks.append(self._mark(found["name"], value, on))
        return tuple(marks)

    def _mark(self, name: str, value: int | str, on: type[Marked]) -> Mark:
        annotation = find_annotation(name, on)
        if annotation is None:
            known = ", ".join(names_on(on))
            raise self._back(f"marks a {WHAT[on]} {name!r}; there are {known}")
        mark = annotation.read(value)
        if mark is None:
            raise self._back(f"marks a {WHAT[on]} {name}={value!r}; it is {annotation.values}")
        return mark

    def _simple(self) -> Stmt:
        line = self._next()
        try:
            return Syntax(self.buffers).statement(line.text)
        except (SyntaxError, LookupError, ValueError, TypeError, AttributeError) as error:
            raise self._back(f"is no statement ({error})") from None

    def _expr(self, text: str) -> Expr:
        try:
            return Syntax(self.buffers).read(text)
        except ParseError:
            raise self._back("has no expression that can be understood") from None


def _unquoted(word: str) -> str:
    return str(json.loads(word)) if word.startswith('"') else word
