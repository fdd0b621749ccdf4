"""Names of a model that hold integers: which reals they stand for, and who may read them.

The graph has the reals. A reader that takes the integers at another scale or zero point than they
were made at gets what these mean to it: reals times and plus a number.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from driver.network.frontend.call import Array, Lowered, OnnxCall, RefusedError, Scope
from driver.network.frontend.integers import dynamic_scales, plain_integers
from driver.network.frontend.operators.channel_affine import with_constants
from driver.network.graph.grid import Grid

_READ_INTEGERS: Final = frozenset(
    {"Cast", "ConvInteger", "DequantizeLinear", "MatMulInteger", "MatMulIntegerToFloat", "QGemm"}
)
_READ_SHAPES: Final = frozenset({"Shape", "Size"})
_READ_INTEGERS_TOO: Final = "QLinear"
"""How the names of further ones begin."""


def check(call: OnnxCall, scope: Scope) -> None:
    """Refuses an operator that reads integers as if they were reals, or scales that it must not.

    Raises:
        RefusedError: the text says what to do.
    """
    dynamic_scales.after(call, scope)
    grids = _grids_of(call.inputs, scope)
    reads = call.operator in _READ_INTEGERS or call.operator.startswith(_READ_INTEGERS_TOO)
    if reads or call.operator in _READ_SHAPES or not any(grids):
        return
    if call.operator in plain_integers.ARITHMETIC and all(
        each is None or each.is_whole for each in grids
    ):
        return
    if call.operator not in dynamic_scales.MOVES:
        raise RefusedError("reads quantized values; put DequantizeLinear before it")
    if len(set(_grids_of(_moved(call), scope))) > 1:
        raise RefusedError("reads values of different scales or zero points")


def pass_on(call: OnnxCall, scope: Scope) -> None:
    """Notes what follows of the operands for the results."""
    scope.units |= dict.fromkeys(call.outputs, dynamic_scales.after(call, scope))
    if all(scope.is_constant(name) for name in call.outputs if name):
        return
    if call.operator in plain_integers.ARITHMETIC:
        grid = plain_integers.result_grid(call, scope)
    else:
        grid = _moved_grid(call, scope)
    if grid is not None:
        scope.grids |= dict.fromkeys(call.outputs, grid)
    if call.operator in dynamic_scales.MOVES:
        _pass_on_rounding(call, scope)


def _pass_on_rounding(call: OnnxCall, scope: Scope) -> None:
    """Notes that what is moved stays as rounded as it was."""
    moved = {scope.resolved(name) for name in _moved(call)}
    grids = {scope.rounded.get(name) for name in moved}
    made = [scope.resolved(name) for name in call.outputs]
    if len(grids) == 1 and (grid := grids.pop()) is not None:
        scope.rounded |= dict.fromkeys(made, grid)
    if moved <= scope.dynamic:
        scope.dynamic.update(made)


def _moved_grid(call: OnnxCall, scope: Scope) -> Grid | None:
    """That of the operand which an operator moves; of a table of integers, these themselves."""
    if call.operator not in dynamic_scales.MOVES:
        return None
    if call.operator == "Gather" and scope.is_constant(call.inputs[0]):
        return plain_integers.grid_of(call.inputs[0], scope)
    return next((grid for grid in _grids_of(_moved(call), scope) if grid is not None), None)


def _moved(call: OnnxCall) -> tuple[str, ...]:
    """The operands whose elements an operator moves; others say where to."""
    return call.inputs if call.operator == "Concat" else call.inputs[:1]


def _grids_of(names: tuple[str, ...], scope: Scope) -> list[Grid | None]:
    """What the activations among these stand for."""
    return [scope.grids.get(name) for name in names if name and not scope.is_constant(name)]


def grid_at(call: OnnxCall, scope: Scope, index: int = 0) -> Grid:
    """The grid of the integers at that input.

    Raises:
        RefusedError: there are reals.
    """
    scope.activation(call, index)
    grid = scope.grids.get(call.inputs[index])
    if grid is None:
        raise RefusedError(f"no QuantizeLinear stands before its input {index}")
    return grid


def read_as(call: OnnxCall, scope: Scope, index: int, grid: Grid) -> str:
    """The reals that the integers at that input stand for to a reader with this grid.

    Raises:
        RefusedError: there are reals.
    """
    name, before = scope.activation(call, index), grid_at(call, scope, index)
    grid = replace(grid, dtype=before.dtype)
    if grid == before:
        scope.rounded[name] = grid
        return name
    if (name, before, grid) not in scope.readings:
        factor = grid.scale / before.scale
        addend = (before.zero - grid.zero) * grid.scale
        scaled = Lowered(
            with_constants(scope.held(name), np.float32(factor), np.float32(addend)),
            (name,),
            scope.shapes[name],
        )
        made = scope.beside(f"read{index}", scaled, call)
        scope.readings[name, before, grid] = made
        scope.rounded[made] = grid
        give_range(scope, made, grid)
    return scope.readings[name, before, grid]


def noted(call: OnnxCall, scope: Scope, what: str, values: Array) -> str:
    """Makes the values a constant under a name that no ONNX tensor has."""
    name = f"{call.outputs[0]}\0{what}"
    scope.constants[name] = values
    return name


def give_range(scope: Scope, name: str, grid: Grid) -> None:
    """Notes the range of a tensor; of two, the wider."""
    if not grid.is_counted:
        scope.ranges[name] = max(scope.ranges.get(name, 0.0), grid.reach)
