"""Sums over products of two tensors, by labels of their axes: what MatMul, Gemm and Einsum are.

A label that both operands and the result have tells groups apart, one that the result lacks is
summed over, all others are free. With the labels in that order, two activations are a product along
their channels in groups; of an activation and a constant it is a convolution of one pixel, or a
dense layer where there is just one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driver.network.frontend.batch_layout import held_shape
from driver.network.frontend.call import Lowered, OnnxCall, RefusedError, Scope
from driver.network.frontend.operators.moves import check_few, moved
from driver.network.graph.ir import (
    Conv2d,
    Dense,
    FloatArray,
    Gather,
    MatMul,
    Operator,
    Shape,
    Window,
)

Labels: TypeAlias = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """An operand: an activation by its name or a constant, and a label for each of its axes.

    An axis of extent 1 that is repeated to fit the other operand has the label None.
    """

    what: str | FloatArray
    labels: Labels

    def shape(self, scope: Scope) -> Shape:
        """The shape in the file."""
        return scope.shapes[self.what] if isinstance(self.what, str) else self.what.shape


@dataclass(frozen=True, slots=True)
class _Roles:
    """The labels of a contraction by what they do, and the extent of each in one sample."""

    groups: Labels
    summed: Labels
    first: Labels
    second: Labels
    extents: dict[Hashable, int]

    def count(self, labels: Labels) -> int:
        return math.prod(self.extents[label] for label in labels)


def contracted(
    a: Factor, b: Factor, result: Labels, call: OnnxCall, scope: Scope, scale: float = 1.0
) -> Lowered:
    """The sum of products of two operands, at least one of them an activation.

    It is multiplied by `scale`, which is positive.

    Raises:
        RefusedError: extents do not fit, or the batch is mixed or summed over.
    """
    _check_batch(a, b, result, scope)
    if isinstance(a.what, str) and isinstance(b.what, str):
        roles = _roles(a, b, result, scope)
        op: Operator = MatMul(groups=roles.count(roles.groups), scale=scale)
        sources: tuple[str, ...] = (
            _brought(a, roles, roles.first, (roles.count(roles.first),), "a", call, scope),
            _brought(b, roles, roles.second, (roles.count(roles.second),), "b", call, scope),
        )
        made = (*roles.groups, *roles.first, *roles.second)
    else:
        data, constant = (a, b) if isinstance(a.what, str) else (b, a)
        roles = _roles(data, constant, result, scope)
        pixels = roles.count(roles.first)
        weight = _matrix(constant, roles)
        op = _layer(weight if scale == 1 else weight * np.float32(scale), roles, pixels)
        form = () if isinstance(op, Dense) else (pixels, 1)
        sources = (_brought(data, roles, roles.first, form, "data", call, scope),)
        made = (*roles.groups, *roles.second, *roles.first)
    whole = _whole(result, a, b, scope)
    index = _places(made, result, roles).reshape(held_shape(whole, scope.batch)[1:])
    in_order = np.array_equal(index.reshape(-1), np.arange(index.size))
    return Lowered((op,) if in_order else (op, Gather(index=index)), sources, whole)


def _check_batch(a: Factor, b: Factor, result: Labels, scope: Scope) -> None:
    """Every activation begins with the batch, as the result does, and constants do not have it."""
    if scope.batch == 1:
        return
    batch = result[0] if result else None
    for each in (a, b):
        labels, shape = each.labels, each.shape(scope)
        if isinstance(each.what, str):
            fits = batch is not None and labels[:1] == (batch,)
        else:
            fits = batch not in labels or shape[labels.index(batch)] == 1
        if not fits:
            shapes = [list(operand.shape(scope)) for operand in (a, b)]
            raise RefusedError(f"mixes the batch axis of {shapes[0]} and {shapes[1]}")


def _roles(a: Factor, b: Factor, result: Labels, scope: Scope) -> _Roles:
    extents: dict[Hashable, int] = {}
    for each in (a, b):
        shape = each.shape(scope)
        if scope.batch != 1 and isinstance(each.what, str):
            shape = (1, *shape[1:])
        for label, extent in zip(each.labels, shape, strict=True):
            if label is not None and extents.setdefault(label, extent) != extent:
                shapes = [list(operand.shape(scope)) for operand in (a, b)]
                raise RefusedError(f"multiplies {shapes[0]} by {shapes[1]}, which do not fit")
    kept = [tuple(each for each in x.labels if each is not None) for x in (a, b)]
    both = set(kept[0]) & set(kept[1])
    if any(label not in result for label in set(kept[0]) ^ set(kept[1])):
        raise RefusedError("sums over an axis of one operand alone")
    return _Roles(
        groups=tuple(each for each in result if each in both),
        summed=tuple(each for each in kept[0] if each in both and each not in result),
        first=tuple(each for each in result if each in kept[0] and each not in both),
        second=tuple(each for each in result if each in kept[1] and each not in both),
        extents=extents,
    )


def _ordered(x: NDArray[Any], labels: Labels, order: Labels) -> NDArray[Any]:
    """`x` with its labelled axes in an order; those without a label are dropped."""
    kept = x.squeeze(tuple(axis for axis, label in enumerate(labels) if label is None))
    names = [label for label in labels if label is not None]
    return kept.transpose([names.index(label) for label in order])


def _brought(
    factor: Factor,
    roles: _Roles,
    free: Labels,
    form: Shape,
    what: str,
    call: OnnxCall,
    scope: Scope,
) -> str:
    """An activation as [N, channels, *form]: groups and what is summed over are the channels."""
    assert isinstance(factor.what, str)
    channels = (*roles.groups, *roles.summed)

    def move(places: NDArray[np.int32]) -> NDArray[Any]:
        turned = _ordered(places, factor.labels, (*channels, *free))
        return turned.reshape(1, roles.count(channels), *form)

    return scope.beside(what, moved(factor.what, scope, move), call)


def _matrix(constant: Factor, roles: _Roles) -> FloatArray:
    """[G*N, K] of a constant operand."""
    assert not isinstance(constant.what, str)
    order = (*roles.groups, *roles.second, *roles.summed)
    turned = _ordered(constant.what, constant.labels, order)
    rows = roles.count(roles.groups) * roles.count(roles.second)
    return np.ascontiguousarray(turned.reshape(rows, roles.count(roles.summed)), np.float32)


def _layer(weight: FloatArray, roles: _Roles, pixels: int) -> Conv2d | Dense:
    groups, bias = roles.count(roles.groups), np.zeros(weight.shape[0], np.float32)
    if groups == pixels == 1:
        return Dense(weight=weight, bias=bias)
    window = Window(kernel=(1, 1))
    return Conv2d(weight=weight[:, :, None, None], bias=bias, window=window, groups=groups)


def _places(made: Labels, result: Labels, roles: _Roles) -> NDArray[np.int32]:
    """Where the elements of the result are in what is made in another order."""
    extents = [roles.extents[label] for label in made]
    check_few(extents)
    places = np.arange(math.prod(extents), dtype=np.int32).reshape(extents)
    return np.ascontiguousarray(places.transpose([made.index(label) for label in result]))


def _whole(result: Labels, a: Factor, b: Factor, scope: Scope) -> Shape:
    """The result's shape in the file."""
    extents: dict[Hashable, int] = {}
    for each in (a, b):
        for label, extent in zip(each.labels, each.shape(scope), strict=True):
            extents[label] = max(extent, extents.get(label, 1))
    return tuple(extents[label] for label in result)
