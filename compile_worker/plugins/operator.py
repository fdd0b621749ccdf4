"""An operator of a user's own, as a Python file declares it.

    @custom_operator("com.example", "ScaledTanh")
    def scaled_tanh(x: Cells, out: Cells, *, scale: float = 1.0) -> None:
        for n in range(x.shape[0]):
            for c in range(x.shape[1]):
                out[n, c] = scale * tanh(x[n, c])

    @scaled_tanh.reference
    def _(x, *, scale=1.0):
        return scale * np.tanh(x)

The function is a script: it is parsed, checked and compiled, and never run by Python; workers get
its text within a workload. Parameters are the node's inputs in order, then its one output; keyword
ones are attributes. The reference is run where the network is imported, and has to agree.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from tilefarm.errors import SettingsError
from tilefarm.printable import printable

from compile_worker.te.script import Script, script

Reference: TypeAlias = Callable[..., Any]
ShapeRule: TypeAlias = Callable[..., tuple[int, ...]]
_DEFINED: Final = ("ai.onnx", "com.microsoft")
"""How domains begin whose operators mean what others have written down."""


@dataclass(slots=True)
class CustomOperator:
    """What stands for the nodes of one domain and name.

    Attributes:
        stage: the script; text: its words, without decorators, comments and types.
        defaults: of attributes; those without one have to be given by the node.
        outer: numbers around the function that it names.
        shape: the shape of the result for those of the inputs, and the attributes as keywords;
            None: that of the first input.
        is_flat: the script sees every tensor as one axis: for operators on elements of any rank.
        numpy: the reference, on arrays and attributes; None until it is given.
    """

    domain: str
    name: str
    stage: Script
    text: str
    defaults: Mapping[str, float]
    outer: Mapping[str, float]
    shape: ShapeRule | None = None
    is_flat: bool = False
    numpy: Reference | None = field(default=None)

    @property
    def label(self) -> str:
        return f"{self.domain}.{self.name}"

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the inputs, in order."""
        return tuple(each.arg for each in self.stage.tree.args.args)[:-1]

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(each.arg for each in self.stage.tree.args.kwonlyargs)

    def reference(self, function: Reference) -> Reference:
        """Decorates the numpy that the script has to agree with."""
        self.numpy = function
        return function


def is_defined_elsewhere(domain: str) -> bool:
    """Whether a domain's operators mean what others have written down."""
    return not domain or domain.startswith(_DEFINED)


def custom_operator(
    domain: str, name: str, *, shape: ShapeRule | None = None, flat: bool = False
) -> Callable[[Callable[..., None]], CustomOperator]:
    """Declares the script below it as the operator of that ONNX domain and name.

    Args:
        domain, name: of the nodes that it stands for.
        shape: the result's shape, from those of the inputs and the attributes as keywords; where it
            is left out, that of the first input.
        flat: the script sees every tensor as one axis.

    Raises:
        SettingsError: the domain is one whose operators are defined elsewhere, or one of the words
            is no name; or a number of the script is none.
        ScriptError: the function is no script.
    """
    for word in (domain, name):
        if not isinstance(word, str) or not re.fullmatch(r"[\w.-]*", word) or word == name == "":
            raise SettingsError(
                f"{printable(repr(word))} is no name of an operator or a domain",
                "letters, digits, points and dashes, as ONNX files have them",
            )
    if is_defined_elsewhere(domain):
        raise SettingsError(
            f"{domain or 'ai.onnx'}.{name}: operators of that domain are defined elsewhere",
            "a domain of your own, as com.example, in the model as well",
        )

    def declared(function: Callable[..., None]) -> CustomOperator:
        stage = script(function)
        return CustomOperator(
            domain=domain,
            name=name,
            stage=stage,
            text=_text(stage),
            defaults=_finite(f"{domain}.{name}", _defaults(function)),
            outer=_finite(f"{domain}.{name}", _numbers_outside(stage)),
            shape=shape,
            is_flat=flat,
        )

    return declared


def _text(stage: Script) -> str:
    """The function as short as it can be said: the same words, the same workload."""
    tree = ast.parse(ast.unparse(stage.tree)).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.decorator_list = []
    tree.returns = None
    if ast.get_docstring(tree) is not None and len(tree.body) > 1:
        tree.body = tree.body[1:]
    for argument in (*tree.args.args, *tree.args.kwonlyargs):
        argument.annotation = None
    tree.args.kw_defaults = [None] * len(tree.args.kwonlyargs)
    return ast.unparse(tree)


def _defaults(function: Callable[..., None]) -> dict[str, object]:
    given = inspect.signature(function).parameters.values()
    return {
        each.name: each.default for each in given if each.default is not inspect.Parameter.empty
    }


def _numbers_outside(stage: Script) -> dict[str, float]:
    """Numbers around the function that it names; they go with its text."""
    used = {node.id for node in ast.walk(stage.tree) if isinstance(node, ast.Name)}
    return {
        name: value
        for name, value in stage.outer.items()
        if name in used and isinstance(value, int | float)
    }


def _finite(label: str, numbers: Mapping[str, object]) -> dict[str, float]:
    """The numbers, which go into a workload, and so into JSON.

    Raises:
        SettingsError: one is no number of float64.
    """
    found: dict[str, float] = {}
    for name, value in numbers.items():
        if not isinstance(value, int | float):
            raise SettingsError(f"{label}: {name} is no number", "a number, or none at all")
        if not abs(value) <= sys.float_info.max:
            raise SettingsError(
                f"{label}: {name} is no finite number", "for an infinity a large one, as 3.4e38"
            )
        found[name] = value
    return found
