"""Stages written as small Python functions of loops, subscripts and arithmetic.

    @script
    def matmul(a: Cells, b: Cells, out: Cells) -> None:
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                out[i, j] = 0
                for k in range(a.shape[1]):
                    out[i, j] += a[i, k] * b[k, j]

    matmul([a, b], [Buffer("out", (4, 8), INT32)])      is the stage that te.compute makes of total

The function is parsed, not run. Parameters are the inputs, then the outputs; keyword-only ones are
numbers. Names of numbers outside of the function can be used too. What is allowed:

    for i in range(n) or range(a, b), parallel(n), vectorized(n), unrolled(n)
    if, elif, else; x if c else y; and, or, not; < <= > >= == !=
    + - * / // % >> and += and the like; min, max, select, round_even, int32(x) and other types
    exp, log, tanh, sigmoid, sqrt, erf, abs, floor and ceil of float32, as `tilefarm.real` has them
    t[i, j] = ...; name = number, expression or element; t = buffer(int32, 4, 16); t.shape[0]

`min` and `max` of floats are NaN where one of them is. No integer is NaN: its conversion gives the
least one, or the innermost bound within it, as of int8(min(max(x, -127.0), 127.0)).

Integers wrap at their width, and operands must have one type: a literal takes the other's. A name
that is changed by what it was (`total += x[i]`) has a type from the start: that of `int32(0)`, and
float32 where it starts with a plain 0.0.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tilefarm.plural import plural

from compile_worker.ir.accesses import accesses, outside
from compile_worker.ir.bounds import extents_of
from compile_worker.ir.expr import Buffer
from compile_worker.ir.stmt import Stmt, sequence
from compile_worker.te.script_errors import ScriptError, ScriptSource
from compile_worker.te.script_nests import nests_of
from compile_worker.te.script_statements import Statements
from compile_worker.te.tensor import Tensor
from compile_worker.te.work import Work

__all__ = ["Script", "ScriptError", "script", "script_of"]

_PARAMETERS: Final = "inputs and outputs by position, numbers as keywords"


@dataclass(frozen=True, slots=True)
class Script:
    """A parsed function, to be applied to tensors of any shape."""

    source: ScriptSource
    tree: ast.FunctionDef
    outer: Mapping[str, object]

    @property
    def name(self) -> str:
        return self.tree.name

    def __call__(
        self, inputs: Sequence[Tensor], outputs: Sequence[Buffer], **numbers: float
    ) -> Work:
        """The outputs as the script makes them: one nest for each of its outermost loops.

        A nest is named after the first output or buffer that it writes.

        Raises:
            ScriptError: the script does what it may not, or for these shapes; it says where.
        """
        given = [*(tensor.buffer for tensor in inputs), *outputs]
        statements = Statements(self.source, self._bound(given, numbers), {*outputs})
        body = statements.run(self.tree.body)
        self._check(statements, body)
        ranked = [*outputs, *statements.scratch]
        nests = nests_of(body, ranked, statements)
        return Work(tuple(map(Tensor, outputs)), sequence(nests), tuple(statements.scratch))

    def _bound(self, given: Sequence[Buffer], numbers: Mapping[str, float]) -> dict[str, object]:
        """What each name of the parameters and around the function stands for."""
        declared = self.tree.args
        names = [each.arg for each in (*declared.posonlyargs, *declared.args)]
        if len(names) != len(given):
            why = f"{self.name} takes {plural(len(names), 'tensor')}, not {len(given)}"
            raise self.source.error(self.tree, why, _PARAMETERS)
        wanted = {each.arg for each in declared.kwonlyargs}
        if wanted != numbers.keys():
            wrong = ", ".join(sorted(wanted ^ numbers.keys()))
            why = f"{self.name} takes the numbers {', '.join(sorted(wanted)) or 'none'}: {wrong}"
            raise self.source.error(self.tree, why, _PARAMETERS)
        return {**self.outer, **numbers, **dict(zip(names, given, strict=True))}

    def _check(self, statements: Statements, body: Sequence[Stmt]) -> None:
        """Refuse accesses out of bounds, where they are written."""
        for stmt in body:
            extents = extents_of(stmt)
            for access in accesses(stmt):
                why = outside(access, extents)
                if why:
                    where = statements.places.get(access.place, self.tree)
                    legal = "a smaller range, or an if around it"
                    raise self.source.error(where, why, legal)


def script(function: Callable[..., None]) -> Script:
    """Make a stage of a function, which is parsed and never run.

    Raises:
        ScriptError: its source is no plain function.
    """
    lines, first = inspect.getsourcelines(function)
    file = inspect.getsourcefile(function) or "script"
    names = inspect.getclosurevars(function)
    return _parsed(lines, first, file, {**names.globals, **names.nonlocals})


def script_of(text: str, numbers: Mapping[str, float] | None = None) -> Script:
    """Make a stage of the text of a function.

    Args:
        numbers: that names outside of it stand for.

    Raises:
        ScriptError: it is no plain function.
    """
    return _parsed(text.splitlines(keepends=True), 1, "script", dict(numbers or {}))


def _parsed(lines: Sequence[str], first: int, file: str, outer: Mapping[str, object]) -> Script:
    source = ScriptSource(file, first, tuple(line.rstrip() for line in lines))
    try:
        body = ast.parse(textwrap.dedent("".join(lines))).body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise source.error(ast.Pass(), f"no Python: {error}", "a function") from None
    tree = body[0] if len(body) == 1 else ast.Pass()
    if not isinstance(tree, ast.FunctionDef) or tree.args.vararg or tree.args.kwarg:
        raise source.error(tree, "a script is a function with named parameters", _PARAMETERS)
    return Script(source, tree, outer)
