"""A node of a user's operator as the graph has it, once its script and its numpy agree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import index
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.errors import TilefarmError
from tilefarm.plural import plural

from compile_worker.plugins.operator import CustomOperator
from compile_worker.plugins.patience import OverdueError, patience
from driver.network.frontend.batch_layout import held_shape
from driver.network.frontend.call import Lowered, OnnxCall, RefusedError, Scope
from driver.network.graph.custom_run import run_custom
from driver.network.graph.ir import Custom, FloatArray, Shape

_RELATIVE: Final = 1e-3
_ABSOLUTE: Final = 1e-4
"""How far script and numpy may be apart: float32, and sums in another order."""

SECONDS: Final = 60.0
"""What a plugin's Python may take for one node."""

_MOST: Final = 1 << 28
"""Elements of a result: a gigabyte of float32. More is a slip of the pen."""


def lower_custom(operator: CustomOperator, call: OnnxCall, scope: Scope) -> Lowered:
    """The node, tried once on random inputs.

    Raises:
        RefusedError: the plugin does not fit the node, or says two different things.
    """
    parameters = operator.parameters
    if len(call.inputs) != len(parameters):
        raise RefusedError(
            f"it has {len(call.inputs)} inputs, and {operator.label} of the plugin takes"
            f" {', '.join(parameters)}"
        )
    numbers = _numbers(operator, call)
    constants: dict[str, FloatArray] = {}
    activations: dict[str, str] = {}
    shapes: dict[str, Shape] = {}
    for at, name in enumerate(parameters):
        if scope.is_constant(call.inputs[at]):
            constants[name] = scope.weights(call, at, name)
            shapes[name] = constants[name].shape
        else:
            activations[name] = scope.activation(call, at)
            shapes[name] = scope.shapes[activations[name]]
    if not activations:
        raise RefusedError("operator of a plugin on constants alone")
    shape = result_shape(operator, shapes, numbers)
    seen = {name: _seen(operator, each) for name, each in shapes.items()}
    op = Custom(
        label=operator.label,
        source=operator.text,
        numbers=tuple({**operator.outer, **numbers}.items()),
        operands=tuple((name, seen[name]) for name in activations),
        constants=tuple((name, each.reshape(seen[name])) for name, each in constants.items()),
        seen=_seen(operator, shape),
        held=held_shape(shape, scope.batch),
    )
    op = replace(op, checked=_tried(operator, op, shapes, constants, numbers, shape))
    return Lowered((op,), tuple(activations.values()), shape)


def _numbers(operator: CustomOperator, call: OnnxCall) -> dict[str, float]:
    unknown = sorted(call.attrs.keys() - {*operator.attributes})
    if unknown:
        raise RefusedError(f"{operator.label} of the plugin has no attribute {', '.join(unknown)}")
    found: dict[str, float] = {}
    for name in operator.attributes:
        value = call.attrs.get(name, operator.defaults.get(name))
        if isinstance(value, bool) or not isinstance(value, int | float):
            why = "is missing" if value is None else "is no number"
            raise RefusedError(f"attribute {name!r} {why}")
        if not math.isfinite(value):
            raise RefusedError(f"attribute {name!r} is {value}, no finite number")
        found[name] = value
    return found


def _seen(operator: CustomOperator, shape: Shape) -> Shape:
    return (int(np.prod(shape)),) if operator.is_flat else shape


def result_shape(
    operator: CustomOperator, shapes: Mapping[str, Shape], numbers: Mapping[str, float]
) -> Shape:
    """What the plugin says of the result's shape.

    Raises:
        RefusedError: it fails, or says what is none.
    """
    first = next(iter(shapes.values()))
    if operator.shape is None:
        return first
    try:
        with patience(SECONDS):
            found = operator.shape(*shapes.values(), **numbers)
            shape = tuple(map(index, found))
    except (Exception, SystemExit, OverdueError) as error:
        raise RefusedError(f"the plugin's shape fails: {_said(error)}") from None
    if not shape or min(shape) < 1 or math.prod(shape) > _MOST:
        raise RefusedError(f"the plugin's shape says {list(shape)}")
    return shape


def _tried(
    operator: CustomOperator,
    op: Custom,
    shapes: Mapping[str, Shape],
    constants: Mapping[str, FloatArray],
    numbers: Mapping[str, float],
    shape: Shape,
) -> str:
    """Runs script and numpy on the same random inputs, and compares all that they make.

    Raises:
        RefusedError: one of them fails, or they differ.
    """
    rng = np.random.default_rng(0)
    data = {name: rng.standard_normal(shapes[name], np.float32) for name, _ in op.operands}
    wanted = _by_numpy(operator, {**data, **constants}, numbers)
    try:
        with patience(SECONDS):
            made = run_custom(op, [data[name].reshape(op.held[0], -1) for name, _ in op.operands])
    except ValueError as error:  # in our words: scripts are not run by Python
        raise RefusedError(f"the plugin's script: {' '.join(str(error).split())}") from None
    except (TilefarmError, OverdueError) as error:
        raise RefusedError(f"the plugin's script: {_said(error)}") from None
    if wanted.shape != shape:
        raise RefusedError(
            f"the plugin's numpy makes {list(wanted.shape)}, and its shape says {list(shape)}"
        )
    found = made.reshape(shape)
    if _differ(found, wanted):
        apart = np.abs(found - wanted) - _RELATIVE * np.abs(wanted)
        at = np.unravel_index(np.argmax(np.where(np.isnan(apart), np.inf, apart)), shape)
        raise RefusedError(
            f"the plugin's script makes {found[at]:.6g} and its numpy {wanted[at]:.6g} at"
            f" {[int(i) for i in at]}"
        )
    if op.held[0] > 1 and _mixes(operator, {**data, **constants}, list(data), numbers, wanted):
        raise RefusedError(
            f"{operator.label} of the plugin mixes the samples of a batch of {op.held[0]}"
        )
    furthest = float(np.abs(found - wanted).max())
    return f"script and numpy are at most {furthest:.2g} apart in {plural(found.size, 'element')}"


def _mixes(
    operator: CustomOperator,
    given: Mapping[str, FloatArray],
    batched: Sequence[str],
    numbers: Mapping[str, float],
    wanted: FloatArray,
) -> bool:
    """Whether a sample of the result depends on another sample, or on its place among them.

    Of any two samples one is changed and the other is not in one of the runs, both ways round.
    """
    samples = np.arange(len(wanted))
    rng = np.random.default_rng(1)
    moved = {name: np.roll(given[name], 1, axis=0) for name in batched}
    if _differ(_by_numpy(operator, {**given, **moved}, numbers), np.roll(wanted, 1, axis=0)):
        return True
    for bit in range(int(samples[-1]).bit_length()):
        for value in (0, 1):
            stay = (samples >> bit & 1) == value
            changed = {name: given[name].copy() for name in batched}
            for each in changed.values():
                each[~stay] = rng.standard_normal(each[~stay].shape, np.float32)
            found = _by_numpy(operator, {**given, **changed}, numbers)
            if _differ(found[stay], wanted[stay]):
                return True
    return False


def _differ(found: FloatArray, wanted: FloatArray) -> bool:
    """Whether the same inputs made something else; sums in another order are the same."""
    apart = np.abs(found - wanted) - _RELATIVE * np.abs(wanted)
    return found.shape != wanted.shape or not (apart <= _ABSOLUTE).all()


def _by_numpy(
    operator: CustomOperator, given: Mapping[str, FloatArray], numbers: Mapping[str, float]
) -> FloatArray:
    """What the reference makes of copies: what it does to them is its own affair.

    Raises:
        RefusedError: there is none, it fails, does not end, or makes no numbers that are float32.
    """
    if operator.numpy is None:
        raise RefusedError(f"{operator.label} of the plugin has no reference to be checked by")
    try:
        with patience(SECONDS):
            copies = (given[name].copy() for name in operator.parameters)
            made: NDArray[Any] = np.asarray(operator.numpy(*copies, **numbers))
    except (Exception, SystemExit, OverdueError) as error:
        raise RefusedError(f"the plugin's numpy fails: {_said(error)}") from None
    if made.dtype.kind not in "fiub":
        raise RefusedError(f"the plugin's numpy makes {made.dtype}, no float32")
    return made.astype(np.float32)


def _said(error: BaseException) -> str:
    """An error's words in one line."""
    match error:
        case TilefarmError():
            said = error.what
        case OverdueError():
            said = str(error)
        case _:
            said = f"{type(error).__name__}: {error}"
    return " ".join(said.split())
