"""Functions that one can read and constructors that one can call: limits, without exceptions.

A function's lines are counted without its docstring and blank lines, but with its signature and
its comments; what is defined within it counts. Of a constructor count the parameters that every
caller has to give, those of a dataclass as well.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("proto/tilefarm", "driver", "compile_worker", "tuner", "device_server")

MOST_LINES = 60
MOST_PARAMETERS = 8


def test_no_function_is_too_long() -> None:
    found = {name: lines for name, lines in lines_of_functions() if lines > MOST_LINES}
    assert not found, f"{found} have more than {MOST_LINES} lines\n  try: name an idea in it"


def test_no_constructor_asks_for_too_much() -> None:
    found = {name: n for name, n in parameters_of_constructors() if n > MOST_PARAMETERS}
    assert not found, f"{found} need more than {MOST_PARAMETERS} parameters\n  try: group them"


@cache
def modules() -> list[tuple[str, ast.Module, list[str]]]:
    """The modules of the product: their paths, what they say, and their lines."""
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if "_pb2" not in path.name
    }
    assert texts
    return [(path, ast.parse(text), text.splitlines()) for path, text in texts.items()]


def lines_of_functions() -> Iterator[tuple[str, int]]:
    for path, module, lines in modules():
        for name, function in functions(module):
            yield f"{path}::{name}", lines_of(function, lines)


def parameters_of_constructors() -> Iterator[tuple[str, int]]:
    for path, module, _ in modules():
        classes = {node.name: node for node in ast.walk(module) if isinstance(node, ast.ClassDef)}
        for name, owner in classes.items():
            yield f"{path}::{name}", len(required(owner, classes))


def functions(
    scope: ast.AST, within: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The functions of a module, and those of its classes and functions, by dotted name."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.expr):
            continue  # where no function can stand that has a name
        name = within
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{within}.{node.name}".removeprefix(".")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield name, node
        yield from functions(node, name)


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> int:
    assert function.end_lineno is not None
    counted = set(range(function.lineno, function.end_lineno + 1))
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        assert docstring.end_lineno is not None
        counted -= set(range(docstring.lineno, docstring.end_lineno + 1))
    return sum(bool(lines[number - 1].strip()) for number in counted)


def required(owner: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> set[str]:
    """What a constructor cannot be called without, as far as one module tells."""
    for line in owner.body:
        if isinstance(line, ast.FunctionDef) and line.name == "__init__":
            return required_by(line.args)
    bases = [
        classes[base.id]
        for base in owner.bases
        if isinstance(base, ast.Name) and base.id in classes and base.id != owner.name
    ]
    inherited = {name for base in bases for name in required(base, classes)}
    return inherited | (required_fields(owner) if has_fields(owner) else set())


def required_by(parameters: ast.arguments) -> set[str]:
    by_place = [*parameters.posonlyargs, *parameters.args][1:]
    by_name = zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
    needed = by_place[: len(by_place) - len(parameters.defaults)]
    return {each.arg for each in (*needed, *(name for name, default in by_name if not default))}


def has_fields(owner: ast.ClassDef) -> bool:
    """Whether it is a dataclass or a named tuple."""
    return any("dataclass" in ast.unparse(each) for each in owner.decorator_list) or any(
        "NamedTuple" in ast.unparse(base) for base in owner.bases
    )


def required_fields(owner: ast.ClassDef) -> set[str]:
    return {
        line.target.id
        for line in owner.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        if "ClassVar" not in ast.unparse(line.annotation) and is_required(line.value)
    }


def is_required(default: ast.expr | None) -> bool:
    """Whether a field with that on its right has to be given."""
    if isinstance(default, ast.Call) and ast.unparse(default.func).endswith("field"):
        return not {each.arg for each in default.keywords} & {"default", "default_factory", "init"}
    return default is None


def module_of(text: str) -> tuple[ast.Module, list[str]]:
    text = textwrap.dedent(text)
    return ast.parse(text), text.splitlines()


def test_lines_are_those_that_say_something() -> None:
    module, lines = module_of(
        '''
        class Owner:
            def told(self) -> None:
                """Three lines.

                Of words.
                """

                # A reason.
                def within() -> None:
                    pass
        '''
    )
    assert {name: lines_of(each, lines) for name, each in functions(module)} == {
        "Owner.told": 4,
        "Owner.told.within": 2,
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("class A:\n  def __init__(self, a, b=1, *, c, d=2): pass", {"a", "c"}),
        ("@dataclass(frozen=True)\nclass A:\n  a: int\n  b: int = 1", {"a"}),
        ("@dataclass\nclass A:\n  a: int = field()\n  b: int = field(default=1)", {"a"}),
        ("@dataclass\nclass A:\n  a: ClassVar[int]\n  b: int = field(init=False)", set()),
        ("@dataclass\nclass B:\n  b: int\n@dataclass\nclass A(B):\n  a: int", {"a", "b"}),
        ("class A(NamedTuple):\n  a: int\n  b: int = 1", {"a"}),
        ("class A:\n  a: int", set()),
    ],
)
def test_parameters_are_those_that_one_has_to_give(text: str, names: set[str]) -> None:
    module, _ = module_of(text)
    classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    assert required(classes["A"], classes) == names
