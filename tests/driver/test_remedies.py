"""Nobody is told what is wrong without being told what to try."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tilefarm import errors

ROOT = Path(__file__).parents[2]
ACTED_ON = {
    name
    for name, error in vars(errors).items()
    if isinstance(error, type)
    and issubclass(error, errors.UserError | errors.NoDeviceError | errors.UnreachableError)
    and error is not errors.ScheduleError  # tells the primitive first, and its remedy fourth
}


def made(tree: ast.AST) -> Iterator[ast.Call]:
    """Where errors that a user can act on are made."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else None
            name = node.func.id if isinstance(node.func, ast.Name) else name
            if name in ACTED_ON:
                yield node


def has_remedy(call: ast.Call) -> bool:
    if any(isinstance(each, ast.Starred) for each in call.args):
        return True
    hints = [*call.args[1:], *(word.value for word in call.keywords if word.arg == "hint")]
    return any(not (isinstance(each, ast.Constant) and each.value == "") for each in hints)


@pytest.mark.parametrize(
    "package", ["driver", "tuner", "compile_worker", "device_server", "proto/tilefarm"]
)
def test_every_error_that_a_user_can_act_on_is_made_with_a_remedy(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    without = [
        f"{file.relative_to(ROOT)}:{call.lineno}"
        for file in files
        for call in made(ast.parse(file.read_text()))
        if not has_remedy(call)
    ]
    assert without == []


def test_errors_without_one_are_found() -> None:
    source = "raise DataError('x')\nraise errors.OutputError('x', '')\nraise DataError('x', 'y')"
    assert [has_remedy(call) for call in made(ast.parse(source))] == [False, False, True]
