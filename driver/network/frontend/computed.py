"""Constants that an operator for activations makes: its own graph is run at import.

Exporters resize the positions of patches, pad masks or normalize weights by the operators that
networks have; what these mean is written once, in their rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from driver.network.frontend.batch_layout import held_shape
from driver.network.frontend.call import Array, OnnxCall, RefusedError, Scope
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import GraphInput, GraphOutput
from driver.network.graph.shapes import graph_of

_EXACT: Final = float(1 << 24)
"""Up to here float32 has every whole number."""


def computed(
    call: OnnxCall, scope: Scope, take: Callable[[OnnxCall, Scope], None]
) -> tuple[Array, ...]:
    """The results of a call whose inputs are constants, in the type of the first.

    Args:
        take: adds to a scope what a call makes.

    Raises:
        RefusedError: the operator cannot be taken, or the type cannot hold what it makes.
    """
    name = call.inputs[0]
    values = scope.constants.get(name)
    if values is None or values.dtype.kind not in "fiub" or not values.size:
        raise RefusedError("has only constant inputs and cannot be computed at import")
    held = held_shape(values.shape, 1)
    given = GraphInput(name=name, shape=held, axes=tuple(range(len(held))))
    others = {each: scope.constants[each] for each in call.inputs if each and each != name}
    inner = Scope(constants=others, inputs={name: given}, shapes={name: values.shape})
    take(call, inner)
    outputs = [
        GraphOutput(name=each, tensor=inner.resolved(each))
        for each in call.outputs
        if each and inner.resolved(each) in inner.shapes
    ]
    graph = graph_of(call.name, [given], outputs, inner.nodes)
    reals = np.asarray(values, np.float32)
    with np.errstate(all="ignore"):
        found = run_float(graph, {name: reals.reshape(held)})
    return tuple(
        _as_type(found[each].reshape(inner.shapes[inner.resolved(each)]), values)
        if each in found
        else inner.constants.get(each, np.zeros(0, np.float32))
        for each in call.outputs
    )


def _as_type(found: Array, given: Array) -> Array:
    """The results in the type of what they were made from.

    Raises:
        RefusedError: they are whole numbers there, and not here.
    """
    whole = given.dtype.kind in "iub"
    if whole and (max(np.abs(found).max(), np.abs(given).max()) > _EXACT or (found % 1).any()):
        raise RefusedError(
            "has only constant inputs, of integers, and cannot be computed at import"
        )
    return found.astype(given.dtype)
