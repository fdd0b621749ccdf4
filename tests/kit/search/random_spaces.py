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


@st.composite
def layered_spaces(draw: st.DrawFn) -> SearchSpace:
    """Four to five sizes and choices, six values computed one from the other, and limits on these.

    As the compiler's spaces: differences, products and tables of computed values, and most of them
    decide nothing.
    """
    least = draw(st.sampled_from([1, 0, -2]))
    sizes = st.lists(st.integers(least, 6), min_size=2, max_size=4, unique=True).map(sorted)
    variables = [
        Variable(name=f"t{i}", domain=tuple(draw(sizes))) for i in range(draw(st.integers(4, 5)))
    ]
    made: list[Constraint] = []
    for i in range(6):
        known = [v.name for v in variables]
        variables.append(Variable(name=f"v{i}", tunable=False))
        made.append(draw(_computing(f"v{i}", known, dict.fromkeys(known[:4], 6))))
    names = [v.name for v in variables]
    for i in range(draw(st.integers(1, 3))):
        most = draw(st.one_of(st.integers(0, 30), st.sampled_from(names)))
        made.append(Le(name=f"limit{i}", left=draw(st.sampled_from(names[2:])), bound=most))
    columns = draw(st.lists(st.sampled_from(names[:4]), min_size=2, max_size=3, unique=True))
    row = st.tuples(*[st.integers(0, 6)] * len(columns))
    rows = draw(st.lists(row, min_size=20, max_size=60))
    made += [Table(name="table", variables=tuple(columns), rows=tuple(rows))] * draw(st.booleans())
    return SearchSpace(
        name="layered", version=1, variables=tuple(variables), constraints=tuple(made), default=()
    )


@st.composite
def _computing(draw: st.DrawFn, value: str, known: list[str], most: dict[str, int]) -> Constraint:
    """A constraint that computes a value from known ones; `most` of what a table takes."""
    pick = st.sampled_from(known)
    some = tuple(draw(st.lists(pick, min_size=1, max_size=3)))
    match draw(st.sampled_from(["prod", "sum", "difference", "select", "largest", "table"])):
        case "prod":
            return Prod(
                name=value, product=value, factors=some, coefficient=draw(st.integers(1, 3))
            )
        case "sum":
            terms = tuple((draw(st.integers(1, 3)), v) for v in some)
            return Sum(name=value, total=value, terms=terms, constant=draw(st.integers(0, 2)))
        case "difference":
            terms = ((2, draw(pick)), (1, draw(pick)), (-1, draw(pick)))
            return Sum(name=value, total=value, terms=terms, constant=draw(st.integers(-1, 2)))
        case "select":
            options = tuple(draw(st.lists(pick, min_size=2, max_size=7)))
            choice = draw(st.sampled_from(sorted(most)))
            return Select(name=value, value=value, choice=choice, options=options)
        case "largest":
            return Largest(name=value, value=value, options=some)
        case _:
            name = draw(st.sampled_from(sorted(most)))
            numbers = st.lists(st.integers(0, 9), min_size=most[name], max_size=most[name] + 1)
            rows = tuple(enumerate(draw(numbers)))
            return Table(name=value, variables=(name, value), rows=rows)


def brute_force(space: SearchSpace) -> set[tuple[int, ...]]:
    return {
        values
        for values in itertools.product(*(v.domain for v in space.variables))
        if not violations(space, dict(zip(NAMES, values, strict=True)))
    }
