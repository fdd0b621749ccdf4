"""An operator as several others: each is taken as if it were a node of the file.

What is constant is computed at import, and every tensor has a shape, so that the operator can be
written as its definition is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from driver.network.frontend.call import Array, OnnxCall, RefusedError, Scope
from driver.network.graph.ir import Shape

FLOAT: Final = 1
INT64: Final = 7
"""What ONNX calls these types, as an attribute of Cast."""
_OPSET = 21
"""The operator set in which steps are written."""


class Steps:
    """Takes the steps of one call; a step's result has a name, as every tensor has."""

    def __init__(
        self, call: OnnxCall, scope: Scope, take: Callable[[OnnxCall, Scope], None]
    ) -> None:
        self._call = call
        self._scope = scope
        self._take = take
        self._count = 0

    def __call__(self, operator: str, *operands: str | ArrayLike, **attrs: Any) -> str:
        """The result of an operator on tensors, by their names, and on constants.

        Raises:
            RefusedError: it cannot be taken.
        """
        return self.several(operator, 1, *operands, **attrs)[0]

    def several(
        self, operator: str, count: int, *operands: str | ArrayLike, **attrs: Any
    ) -> tuple[str, ...]:
        """So many results of an operator."""
        inputs = tuple(each if isinstance(each, str) else self.constant(each) for each in operands)
        self._count += 1
        step = f"{operator}{self._count}"
        outputs = tuple(f"{self._call.outputs[0]}.{step}.{at}" for at in range(count))
        made = OnnxCall(
            name=f"{self._call.name}.{step}",
            operator=operator,
            domain="",
            opset=_OPSET,
            inputs=inputs,
            outputs=outputs,
            attrs=attrs,
        )
        self._take(made, self._scope)
        return outputs

    def constant(self, values: ArrayLike) -> str:
        """The name of a constant: float32 of reals, int64 of integers, or truth values."""
        array = np.asarray(values)
        kinds: dict[str, type] = {"b": np.bool_, "f": np.float32}
        self._count += 1
        name = f"{self._call.outputs[0]}.constant{self._count}"
        self._scope.constants[name] = array.astype(kinds.get(array.dtype.kind, np.int64))
        return name

    def shape(self, name: str) -> Shape:
        """The shape of a tensor in the file.

        Raises:
            RefusedError: there is no such tensor.
        """
        if name in self._scope.constants:
            return self._scope.constants[name].shape
        resolved = self._scope.resolved(name)
        if resolved not in self._scope.shapes:
            raise RefusedError(f"input {name!r} is neither a weight nor made by a node")
        return self._scope.shapes[resolved]

    def value(self, name: str) -> Array | None:
        """The value of a constant; None of what only data decide."""
        return self._scope.constants.get(name)

    def is_truth(self, name: str) -> bool:
        """Whether a tensor has truth values."""
        if name in self._scope.constants:
            return self._scope.constants[name].dtype.kind == "b"
        grid = self._scope.grids.get(name)
        return grid is not None and grid.dtype == "bool"


Composition: TypeAlias = Callable[[OnnxCall, Steps], tuple[str, ...] | None]
"""Takes the steps of a call; the names of its results, "" for one that it does not make.

None where it needs no steps: the operator's own rule takes it.
"""


def operand(call: OnnxCall, index: int) -> str:
    """The name at that input, "" where it is absent."""
    return call.inputs[index] if call.has_input(index) else ""
