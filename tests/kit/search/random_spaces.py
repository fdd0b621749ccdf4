"""Random small spaces of every kind of constraint, and their points by brute force."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st
from tilefarm.space import (
    Constraint,
    Largest,
    Le,
    Prod,
    SearchSpace,
    Select,
    Sum,
    Table,
    Variable,
    violations,
)

NAMES = ("a", "b", "c", "d")


@st.composite
def constraints(draw: st.DrawFn, name: str) -> Constraint:
    pick = st.sampled_from(NAMES)
    some = st.lists(pick, min_size=1, max_size=3)
    small = st.integers(-2, 3)
    match draw(st.sampled_from(["prod", "sum", "le", "limit", "select", "largest", "table"])):
        case "prod":
            return Prod(
                name=name,
                product=draw(pick),
                factors=tuple(draw(some)),
                coefficient=draw(st.sampled_from([1, 1, 2])),
            )
        case "sum":
            terms = [(draw(small), v) for v in draw(some)]
            return Sum(name=name, total=draw(pick), terms=tuple(terms), constant=draw(small))
        case "le":
            return Le(name=name, left=draw(pick), bound=draw(pick))
        case "limit":
            return Le(name=name, left=draw(pick), bound=draw(small))
        case "select":
            return Select(name=name, value=draw(pick), choice=draw(pick), options=tuple(draw(some)))
        case "largest":
            return Largest(name=name, value=draw(pick), options=tuple(draw(some)))
        case _:
            columns = tuple(draw(st.lists(pick, min_size=1, max_size=3, unique=True)))
            row = st.tuples(*[st.integers(-1, 4)] * len(columns))
            return Table(name=name, variables=columns, rows=tuple(draw(st.lists(row, max_size=8))))


@st.composite
def spaces(draw: st.DrawFn, least: int = -2) -> SearchSpace:
    """Four variables with small domains, zero and negative values too; 1 to 4 constraints."""
    domain = st.lists(st.integers(least, 6), min_size=1, max_size=5, unique=True).map(sorted)
    return SearchSpace(
        name="random",
        version=1,
        variables=tuple(
            Variable(name=n, domain=tuple(draw(domain)), tunable=draw(st.integers(0, 3)) > 0)
            for n in NAMES
        ),
        constraints=tuple(draw(constraints(name=f"c{i}")) for i in range(draw(st.integers(1, 4)))),
        default=(),
    )


def brute_force(space: SearchSpace) -> set[tuple[int, ...]]:
    return {
        values
        for values in itertools.product(*(v.domain for v in space.variables))
        if not violations(space, dict(zip(NAMES, values, strict=True)))
    }
