"""Element accesses with what is known where they happen, and whether they stay in bounds.

Intervals prove nearly all of them, with the help of the conditions around; what they cannot is
evaluated for every iteration.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from compile_worker.ir.bounds import Extents, extents_of, interval
from compile_worker.ir.evaluate import Array, evaluate
from compile_worker.ir.expr import (
    INDEX,
    And,
    Buffer,
    Expr,
    Le,
    Load,
    Lt,
    Select,
    Sub,
    Var,
    index,
)
from compile_worker.ir.findings import Finding
from compile_worker.ir.func import Func
from compile_worker.ir.node import Node
from compile_worker.ir.stmt import Block, If, Store
from compile_worker.ir.visit import children, reads_memory, variables

LIMIT: Final = 1 << 20
"""Iterations that are tried at most to show an access in bounds."""


@dataclass(frozen=True, slots=True)
class GuardedAccess:
    """A read or write of an element: where, and which conditions hold when it happens."""

    place: Load | Store
    conditions: tuple[Expr, ...]

    @property
    def buffer(self) -> Buffer:
        return self.place.buffer


def in_bounds(func: Func) -> Iterator[Finding]:
    """No access leaves its buffer."""
    extents = extents_of(func.body)
    seen: set[GuardedAccess] = set()
    for access in accesses(func.body):
        if access not in seen:
            seen.add(access)
            why = outside(access, extents)
            if why:
                yield why, access.place


def accesses(node: Node, conditions: tuple[Expr, ...] = ()) -> Iterator[GuardedAccess]:
    """Every Load and Store at or below `node`, outermost first."""
    if isinstance(node, Expr) and not reads_memory(node):
        return
    match node:
        case Load() | Store():
            yield GuardedAccess(node, conditions)
        case Select(condition, then, otherwise) | If(condition, then, otherwise):
            yield from accesses(condition, conditions)
            yield from accesses(then, (*conditions, *conjuncts(condition)))
            if otherwise is not None:
                yield from accesses(otherwise, (*conditions, *negated(condition)))
            return
        case Block(body=body, init=init):
            for each in (init, body):
                if each is not None:
                    yield from accesses(each, conditions)
            return
    for child in children(node):
        yield from accesses(child, conditions)


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The conditions that `condition` is the conjunction of."""
    if isinstance(condition, And):
        return conjuncts(condition.left) + conjuncts(condition.right)
    return (condition,)


def negated(condition: Expr) -> tuple[Expr, ...]:
    """What holds when `condition` does not, as far as it is of use."""
    match condition:
        case Lt(left, right):
            return (Le(right, left),)
        case Le(left, right):
            return (Lt(right, left),)
        case _:
            return ()


def outside(access: GuardedAccess, extents: Extents) -> str:
    """Why the access may be out of bounds; nothing if it never is.

    Coordinates that depend on data are taken on trust.
    """
    for axis, (at, extent) in enumerate(zip(access.place.index, access.buffer.shape, strict=True)):
        if reads_memory(at) or _proved(at, extent, access.conditions, extents):
            continue
        why = _tried(at, extent, access.conditions, extents)
        if why:
            return f"index {axis} of {access.buffer.name} {why}, extent {extent}"
    return ""


def _proved(at: Expr, extent: int, conditions: tuple[Expr, ...], extents: Extents) -> bool:
    """0 <= at < extent by intervals, alone or together with one of the conditions."""
    whole = interval(at, extents)
    if whole.low >= 0 and whole.high < extent:
        return True
    slack = [index(0), *(_slack(condition) for condition in conditions)]
    low = any(interval(Sub(at, each), extents).low >= 0 for each in slack)
    room = index(extent - 1) - at
    return low and any(interval(Sub(room, each), extents).low >= 0 for each in slack)


def _slack(condition: Expr) -> Expr:
    """An index that is not negative where the condition holds."""
    match condition:
        case Le(left, right) if left.dtype is INDEX:
            return right - left
        case Lt(left, right) if left.dtype is INDEX:
            return right - left - 1
        case _:
            return index(0)


def _tried(at: Expr, extent: int, conditions: tuple[Expr, ...], extents: Extents) -> str:
    """What goes wrong when every iteration is tried."""
    usable = [each for each in conditions if not reads_memory(each)]
    free = {var for each in (at, *usable) for var in variables(each)}
    if any(var not in extents for var in free):
        return "depends on what no loop binds"
    if math.prod(extents[var] for var in free) > LIMIT:
        return "cannot be shown to be in bounds"
    values = every_value(free, extents)
    found = np.asarray(evaluate(at, values, {}))
    wrong = (found < 0) | (found >= extent)
    for condition in usable:
        wrong = np.logical_and(wrong, evaluate(condition, values, {}))
    if not np.any(wrong):
        return ""
    return f"can be {np.broadcast_to(found, wrong.shape)[wrong].flat[0]}"


def every_value(free: Collection[Var], extents: Mapping[Var, int]) -> dict[Var, Array]:
    """Every combination of the variables' values, each along an axis of its own."""
    shape = [1] * len(free)
    return {
        var: np.arange(extents[var]).reshape([*shape[:at], -1, *shape[at + 1 :]])
        for at, var in enumerate(sorted(free, key=lambda var: var.name))
    }
