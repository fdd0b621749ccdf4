"""Operators on two tensors or more, repeated to fit: activations, and constants among them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import numpy as np

from driver.network.frontend.batch_layout import held_shape
from driver.network.frontend.call import Lowered, OnnxCall, RefusedError, Scope
from driver.network.frontend.operators.channel_affine import of_a_sample, with_constants
from driver.network.frontend.operators.moves import expanded, require_room
from driver.network.graph import ir
from driver.network.graph.ir import FloatArray, Shape

MASK: Final = 1e9
"""What an infinity in a mask becomes: its exponential is 0 next to any other's."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Operands:
    """Operands in one form, in which the graph holds the result.

    `shape` is that of the result in the file, `held` in the graph. `names` are the activations;
    `values`, of all constants together, can be repeated to one sample.
    """

    shape: Shape
    held: Shape
    names: tuple[str, ...]
    values: FloatArray | None

    def result(self, *chain: ir.Operator, of: tuple[str, ...] = ()) -> Lowered:
        """What a chain on these activations, or on some made of them, is."""
        return Lowered(chain, of or self.names, self.shape)

    def scaled(self, mul: FloatArray | float, add: FloatArray | float) -> Lowered:
        """The activation times and plus constants."""
        return self.result(*with_constants(self.held, mul, add))


def add(call: OnnxCall, scope: Scope) -> Lowered:
    """Add and Sum: of any number of operands."""
    return _sum(call, scope, 1.0)


def mean(call: OnnxCall, scope: Scope) -> Lowered:
    """Mean of any number of operands."""
    return _sum(call, scope, 1.0 / len(call.inputs))


def _sum(call: OnnxCall, scope: Scope, factor: float) -> Lowered:
    given = _operands(call, scope, np.add, infinity=MASK)
    total, *others = given.names
    for at, name in enumerate(others[:-1]):
        total = scope.beside(f"sum{at}", given.result(ir.Add(), of=(total, name)), call)
    chain: tuple[ir.Operator, ...] = (ir.Add(),) if others else ()
    if factor != 1 or given.values is not None:
        addend = 0.0 if given.values is None else given.values * np.float32(factor)
        chain = (*chain, *with_constants(given.held, factor, addend))
    return given.result(*chain, of=(total, *others[-1:]))


def subtract(call: OnnxCall, scope: Scope) -> Lowered:
    """Sub of two activations, or with a constant on either side."""
    given = _operands(_of_two(call), scope, np.add)
    if given.values is None:
        return given.result(ir.Add(subtracts=True))
    if scope.is_constant(call.inputs[0]):
        return given.scaled(-1.0, given.values)
    return given.scaled(1.0, -given.values)


def multiply(call: OnnxCall, scope: Scope) -> Lowered:
    """Mul of two activations, or by a constant."""
    given = _operands(_of_two(call), scope, np.multiply)
    return given.result(ir.Product()) if given.values is None else given.scaled(given.values, 0.0)


def divide(call: OnnxCall, scope: Scope) -> Lowered:
    """Div of two activations, or with a constant on either side."""
    given = _operands(_of_two(call), scope, np.multiply)
    if given.values is None:
        return given.result(ir.Product(divides=True))
    if scope.is_constant(call.inputs[0]):
        inverted = ir.Unary(function="reciprocal")
        return given.result(inverted, *with_constants(given.held, given.values, 0.0))
    with np.errstate(divide="ignore", over="ignore"):
        inverse = np.float32(1) / given.values
    if not np.isfinite(inverse).all():
        raise RefusedError("divides by zero")
    return given.scaled(inverse, 0.0)


def where(call: OnnxCall, scope: Scope) -> Lowered:
    """Where: each operand times 1 where it is taken and 0 elsewhere."""
    taken = call.inputs[0]
    if scope.is_constant(taken):
        condition = scope.constants[taken]
        if condition.dtype.kind != "b":
            raise RefusedError(f"condition {taken!r} has type {condition.dtype}")
        left = f"{call.outputs[0]}.left"
        scope.constants[left] = ~condition
    else:
        name = scope.activation(call)
        turned = Lowered(with_constants(scope.held(name), -1.0, 1.0), (name,), scope.shapes[name])
        left = scope.beside("left", turned, call)
    parts = [_masked(call, scope, index, mask) for index, mask in ((1, taken), (2, left))]
    return add(replace(call, operator="Add", inputs=tuple(parts)), scope)


def _masked(call: OnnxCall, scope: Scope, index: int, mask: str) -> str:
    """The name of an operand times a mask."""
    made = f"{call.outputs[0]}.operand{index}"
    if scope.is_constant(call.inputs[index]):
        values = scope.weights(call, index, "operand", MASK)
        if scope.is_constant(mask):
            scope.constants[made] = values * scope.constants[mask]
            return made
        finite = f"{made}.finite"
        scope.constants[finite] = values
        call = replace(call, inputs=(*call.inputs[:index], finite, *call.inputs[index + 1 :]))
    product = replace(
        call,
        operator="Mul",
        name=f"{call.name}.{index}",
        inputs=(call.inputs[index], mask),
        outputs=(made,),
    )
    scope.emit(product.name, made, multiply(product, scope))
    return made


def larger(call: OnnxCall, scope: Scope) -> Lowered:
    """Max of any number of operands; of a and b it is b + max(a - b, 0)."""
    return _extreme(call, scope, np.maximum, lo=0.0)


def smaller(call: OnnxCall, scope: Scope) -> Lowered:
    """Min of any number of operands; of a and b it is b + min(a - b, 0)."""
    return _extreme(call, scope, np.minimum, hi=0.0)


def _extreme(
    call: OnnxCall,
    scope: Scope,
    of_constants: np.ufunc,
    lo: float = -math.inf,
    hi: float = math.inf,
) -> Lowered:
    given = _operands(call, scope, of_constants)
    chain: tuple[ir.Operator, ...] = ()
    of = given.names[:1]
    for at, name in enumerate(given.names[1:]):
        best = scope.beside(f"best{at}", given.result(*chain, of=of), call) if chain else of[0]
        excess = given.result(ir.Add(subtracts=True, lo=lo, hi=hi), of=(best, name))
        chain, of = (ir.Add(),), (scope.beside(f"excess{at}", excess, call), name)
    if given.values is None:
        return given.result(*chain, of=of)
    if given.values.size == 1:
        bound = float(given.values.reshape(()))
        return given.result(*chain, ir.Clip(lo=lo + bound, hi=hi + bound), of=of)
    down = with_constants(given.held, 1.0, -given.values)
    back = with_constants(given.held, 1.0, given.values)
    return given.result(*chain, *down, ir.Clip(lo=lo, hi=hi), *back, of=of)


def _of_two(call: OnnxCall) -> OnnxCall:
    if len(call.inputs) != 2:
        raise RefusedError(f"has {len(call.inputs)} inputs instead of 2")
    return call


def _operands(
    call: OnnxCall, scope: Scope, of_constants: np.ufunc, infinity: float = math.inf
) -> _Operands:
    """The operands of a call in one form; see `Scope.weights` for `infinity`."""
    inputs = range(len(call.inputs))
    active = [index for index in inputs if not scope.is_constant(call.inputs[index])]
    fixed = [scope.weights(call, i, "constant", infinity) for i in inputs if i not in active]
    shapes = [scope.shapes[scope.activation(call, index)] for index in active]
    shapes += [values.shape for values in fixed]
    try:
        whole = np.broadcast_shapes(*shapes)
    except ValueError:
        raise RefusedError(f"combines {[list(shape) for shape in shapes]}") from None
    require_room(shapes[0], whole)
    repeated = np.broadcast_shapes(*shapes[: len(active)]) != whole
    names = tuple(
        _fitted(index, whole, call, scope, to_whole=repeated and not at)
        for at, index in enumerate(active)
    )
    values = [of_a_sample(each, whole, scope.batch) for each in fixed]
    together = reduce(of_constants, values) if values else None
    return _Operands(shape=whole, held=held_shape(whole, scope.batch), names=names, values=together)


def _fitted(index: int, whole: Shape, call: OnnxCall, scope: Scope, *, to_whole: bool) -> str:
    """An activation with as many axes as the result; the graph repeats extents of 1.

    It does not repeat those of the activations to fit constants: one of them has to be the `whole`.
    """
    name = scope.activation(call, index)
    if to_whole:
        return scope.beside(f"operand{index}", expanded(name, scope, whole), call)
    shape = scope.shapes[name]
    aligned = (1,) * (len(whole) - len(shape)) + shape
    if scope.batch != 1 and aligned[0] != scope.batch:
        raise RefusedError(f"repeats the batch axis of {list(shape)} to {list(whole)}")
    counted = scope.batch != 1 or held_shape(whole, 1) == whole
    sample = (aligned[1:] if counted else aligned) or (1,)
    if scope.held(name)[1:] == sample:
        return name
    form = Lowered((ir.Reshape(shape=sample),), (name,), (scope.batch, *sample))
    return scope.beside(f"operand{index}", form, call)
