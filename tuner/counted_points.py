"""Counts the valid points of a space exactly, and draws each of them with equal probability.

A search that merges: of partial points whose completions are the same (`tuner.open_constraints`)
one goes on for all. What is left is a graph of a few ten thousand nodes for a million points. Going
back through it counts how many completions every node has, or what these weigh together, and a walk
from its root that takes each value in proportion is a draw.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tilefarm.space import Constraint, Le, SearchSpace

from tuner.deciding_constraints import deciding_constraints
from tuner.functional_constraints import variables_of
from tuner.open_constraints import OpenConstraints, numbered
from tuner.propagate import EXACT, FAR, Flags, Floats
from tuner.search import PartialPoints, Search, chunks
from tuner.search_plan import BranchLevel, SearchPlan

Weights: TypeAlias = Mapping[str, Mapping[int, float]]
"""How likely values of variables are to be drawn, beside others with as many completions: 1 where
nothing is said. A point is drawn in proportion to the product over its values."""

MOST_EDGES: Final = 200_000
"""Of all levels together: about two seconds of work. Most convolutions have a fifth of that."""


@dataclass(frozen=True, slots=True)
class _Level:
    """What one variable is chosen to be: edges from the nodes before to those behind, in order.

    Attributes:
        values: of the variable.
        tails: how many nodes are before.
        value: the position of each edge's value.
    """

    variable: str
    values: Floats
    tails: int
    tail: NDArray[np.intp]
    value: NDArray[np.intp]
    head: NDArray[np.intp]


class CountedPoints:
    """All valid points of one space, as a graph of what decides about them.

    Args:
        levels: of the graph, from its one root to its one end; none where there are no points.

    Attributes:
        count: how many there are.
    """

    def __init__(self, levels: Sequence[_Level]) -> None:
        self._levels = levels
        self.count = round(self._flows({})[1])

    @classmethod
    def of(cls, space: SearchSpace, most_edges: int = MOST_EDGES) -> CountedPoints | None:
        """None where that takes too many edges, or a space computes with numbers of 2^53 and more.

        Nor for a space in which nothing is chosen, or some value follows from bounds alone.
        """
        levels = _Merging(space).levels(most_edges)
        return None if levels is None else cls(levels)

    def draw(
        self, n: int, rng: np.random.Generator, weights: Weights | None = None
    ) -> tuple[dict[str, Floats], int]:
        """The values of `n` points for the variables that decide: all others follow from them.

        Drawn with replacement, uniformly or in proportion to weights. Second is how many came:
        none where all points weigh nothing.
        """
        flows, whole = self._flows(weights or {})
        node = np.zeros(n if whole > 0 else 0, dtype=np.intp)
        drawn = dict[str, Floats]()
        for level, flow in zip(self._levels, flows, strict=True):
            until = np.concatenate(([0.0], np.cumsum(flow)))
            ends = np.searchsorted(level.tail, np.arange(level.tails + 1))
            low, high = until[ends[node]], until[ends[node + 1]]
            at = np.minimum(low + rng.random(len(node)) * (high - low), np.nextafter(high, low))
            edge = np.searchsorted(until, at, side="right") - 1
            drawn[level.variable] = level.values[level.value[edge]]
            node = level.head[edge]
        return drawn, len(node)

    def _flows(self, weights: Weights) -> tuple[list[Floats], float]:
        """What the points behind every edge weigh, level by level; and all of them together."""
        behind: Floats = np.ones(min(1, len(self._levels)))
        flows = list[Floats]()
        for level in reversed(self._levels):
            of = weights.get(level.variable, {})
            weight = np.asarray([of.get(int(v), 1.0) for v in level.values])
            flows.append(weight[level.value] * behind[level.head])
            behind = np.bincount(level.tail, flows[-1], level.tails).astype(np.float64)
        return flows[::-1], float(behind.sum())


@dataclass(frozen=True, slots=True)
class _Branched:
    """Some edges of a level: where each comes from, its value, and which of the nodes it leads to.

    Attributes:
        seen: what open constraints see of the nodes.
        beyond: whether there are values that are not exact any more.
    """

    tail: NDArray[np.intp]
    value: NDArray[np.intp]
    head: NDArray[np.intp]
    nodes: PartialPoints
    seen: list[Floats]
    beyond: bool


class _Merging:
    """The search of one space that merges what can be completed in the same ways.

    It branches in the order in which the space names its variables: sizes before choices among
    them, as a choice between what is known is over with once it is made.
    """

    def __init__(self, space: SearchSpace) -> None:
        deciding = deciding_constraints(space)
        self._may_fail = deciding.may_fail
        constraints = deciding.space.constraints
        self._limits = [c for c in constraints if isinstance(c, Le)]
        order = [v.name for v in deciding.space.variables if v.tunable and len(v.domain) > 1]
        self._last = _last_needed(deciding.space, order)
        variables = sorted(deciding.space.variables, key=lambda v: -self._last[v.name])
        self._names = [v.name for v in variables]
        relaxed = replace(
            deciding.space,
            variables=tuple(variables),
            constraints=_without_limits(constraints),
        )
        self._search = Search(relaxed, order)

    def levels(self, most_edges: int) -> list[_Level] | None:
        """The graph, level by level. None where it has more edges, or cannot be told."""
        search = self._search
        nodes, made = search.root, list[_Level]()
        if nodes.count and not (search.levels and search.levels[-1].known.issuperset(self._names)):
            return None
        known: Collection[str] = ()
        for depth, level in enumerate(search.levels):
            tails, nodes.owner = nodes.count, np.arange(nodes.count)
            open_, parts = self._open(level), list[_Branched]()
            for chunk in chunks(nodes):
                parts.append(self._branched(depth, open_, known, chunk))
                most_edges -= len(parts[-1].tail)
                if most_edges < 0 or parts[-1].beyond:
                    return None
            nodes, head = _joined(parts)
            tail = np.concatenate([part.tail for part in parts])
            value = np.concatenate([part.value for part in parts])
            name = self._names[level.variable]
            made.append(_Level(name, level.values, tails, tail, value, head))
            known = level.known
        return made

    def _branched(
        self, depth: int, open_: OpenConstraints, known: Collection[str], nodes: PartialPoints
    ) -> _Branched:
        """Some of a level's edges; bounds of variables that nobody needs any more are left out."""
        level = self._search.levels[depth]
        after, value = self._search.branched(level, nodes, partial(self._within_limits, known))
        seen = open_.seen(after.lower, after.upper)
        first, head = numbered(seen, after.count)
        needed = sum(last > depth for last in self._last.values())
        left = PartialPoints(after.lower[:needed], after.upper[:needed], after.owner).kept(first)
        beyond = bool((np.abs(after.lower) >= EXACT).any())
        return _Branched(after.owner, value, head, left, [c[first] for c in seen], beyond)

    def _open(self, level: BranchLevel) -> OpenConstraints:
        """Limits come last: they need what the others compute."""
        computing = [c for c in self._search.plan.evaluated if not isinstance(c, Le)]
        return OpenConstraints(
            [*computing, *self._limits], self._search.index, level.known, self._computed
        )

    def _computed(self, constraint: Constraint) -> Sequence[str]:
        if id(constraint) in self._may_fail:
            return ()
        return self._search.plan.outputs(constraint)

    def _within_limits(self, known: Collection[str], nodes: PartialPoints) -> Flags:
        """Which partial points are not beyond a limit; not of variables that were known before."""
        within, at = np.ones(nodes.count, dtype=np.bool_), self._search.index
        for c in self._limits:
            if all(v in known for v in variables_of(c)):
                continue
            most = nodes.upper[at[c.bound]] if isinstance(c.bound, str) else c.bound
            within &= nodes.lower[at[c.left]] <= most
        return within


def _joined(parts: Sequence[_Branched]) -> tuple[PartialPoints, NDArray[np.intp]]:
    """The nodes of all parts, each once, and which of them each edge leads to."""
    if len(parts) == 1:
        return parts[0].nodes, parts[0].head
    lower = np.concatenate([part.nodes.lower for part in parts], axis=1)
    upper = np.concatenate([part.nodes.upper for part in parts], axis=1)
    seen = [np.concatenate(columns) for columns in zip(*(p.seen for p in parts), strict=True)]
    first, number = numbered(seen, lower.shape[1])
    begins = np.cumsum([0, *(part.nodes.count for part in parts)])
    heads = [part.head + begin for part, begin in zip(parts, begins, strict=False)]
    return PartialPoints(lower, upper, number).kept(first), number[np.concatenate(heads)]


def _last_needed(space: SearchSpace, order: Sequence[str]) -> dict[str, float]:
    """The level of the search at which each variable is needed for the last time, or a later one.

    That is where the last of its constraints has only known variables.
    """
    plan = SearchPlan(space)
    known: dict[str, float] = {v.name: -1 for v in space.variables if len(v.domain) == 1}
    known |= {name: level for level, name in enumerate(order)}
    for constraint in plan.evaluated:
        outputs = plan.outputs(constraint)
        inputs = [v for v in variables_of(constraint) if v not in outputs]
        known |= dict.fromkeys(outputs, max([known.get(v, np.inf) for v in inputs], default=-1))
    last = {v.name: known.get(v.name, np.inf) for v in space.variables}
    for constraint in plan.evaluated:
        closed = max([known.get(v, np.inf) for v in variables_of(constraint)])
        last |= {v: max(last[v], closed) for v in variables_of(constraint)}
    return last


def _without_limits(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """The same, with limits that limit nothing.

    Bounds then follow from choices alone. Whether a limit is kept whatever is chosen can be seen by
    them, not by bounds to which the limit itself has led.
    """
    loose = list[Constraint]()
    for c in constraints:
        if isinstance(c, Le):
            names = dict.fromkeys([c.left, *([c.bound] if isinstance(c.bound, str) else [])])
            loose += [Le(name=c.name, left=name, bound=int(FAR)) for name in names]
        else:
            loose.append(c)
    return tuple(loose)
