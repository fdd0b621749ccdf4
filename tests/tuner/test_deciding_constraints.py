"""Which constraints decide: none that only compute, all that may refute a point."""

from __future__ import annotations

import pytest
from tilefarm.space import Constraint, Largest, Le, Prod, SearchSpace, Select, Sum, Table, Variable

from tuner.deciding_constraints import deciding_constraints

_SIZES = ("a", "b", "c")


def _difference(more: str, less: str) -> Sum:
    return Sum(name="difference", total="result", terms=((1, more), (-1, less)))


def _decide(*constraints: Constraint, a: tuple[int, ...] = (1, 2, 5)) -> set[str]:
    """Names of those of some constraints that are left, over three sizes."""
    computed = [
        getattr(c, f) for c in constraints for f in ("total", "product", "value") if hasattr(c, f)
    ]
    space = SearchSpace(
        name="sizes",
        version=1,
        variables=(
            Variable(name="a", domain=a),
            *(Variable(name=n, domain=(1, 2, 5)) for n in _SIZES[1:]),
            *(Variable(name=n, tunable=False) for n in computed),
        ),
        constraints=constraints,
        default=(),
    )
    return {c.name for c in deciding_constraints(space).space.constraints}


LONGER = Largest(name="longer", value="longest", options=("a", "b"))
BOTH = Prod(name="both", product="whole", factors=("a", "b"))
EITHER = Select(name="either", value="chosen", choice="c", options=("a", "b", "a", "b", "a", "b"))


@pytest.mark.parametrize(
    "constraints",
    [
        (LONGER, _difference("longest", "b")),
        (BOTH, _difference("whole", "a")),
        (BOTH, EITHER, _difference("whole", "chosen")),
        (
            Sum(name="sum", total="more", terms=((1, "a"), (1, "b"))),
            LONGER,
            _difference("more", "longest"),
        ),
        (BOTH, LONGER, EITHER),
    ],
)
def test_what_has_a_result_for_all_inputs_decides_nothing(
    constraints: tuple[Constraint, ...],
) -> None:
    assert not _decide(*constraints)


@pytest.mark.parametrize(
    "constraints",
    [
        (_difference("a", "b"),),
        (LONGER, _difference("a", "longest")),
        (BOTH, _difference("whole", "c")),
        (BOTH, EITHER, LONGER, _difference("chosen", "longest")),
        (  # b * c - longest * c + longest: not what it is where the longest is b
            LONGER,
            Prod(name="shorter_part", product="part", factors=("b", "c")),
            Prod(name="longer_part", product="more", factors=("longest", "c")),
            Sum(
                name="difference",
                total="result",
                terms=((1, "part"), (-1, "more"), (1, "longest")),
            ),
        ),
    ],
)
def test_a_difference_that_may_be_negative_decides(constraints: tuple[Constraint, ...]) -> None:
    assert "difference" in _decide(*constraints)


def test_a_product_with_zero_is_not_larger_than_a_factor() -> None:
    assert "difference" in _decide(BOTH, _difference("whole", "b"), a=(0, 2, 5))


def test_a_product_with_a_negative_factor_is_not_larger_than_the_other() -> None:
    assert "difference" in _decide(BOTH, _difference("whole", "a"), a=(-2, 1, 5))


def test_what_a_limit_needs_is_kept_and_nothing_else() -> None:
    small = Le(name="small", left="whole", bound=9)
    assert _decide(BOTH, LONGER, small) == {"both", "small"}
    assert _decide(BOTH, LONGER, Le(name="small", left="whole", bound=25)) == set()


def test_a_table_decides_where_it_lacks_a_row() -> None:
    rows = tuple((a, 10 * a) for a in (1, 2, 5))
    assert not _decide(
        Table(
            name="table",
            variables=("a", "b"),
            rows=tuple((a, b) for a in (1, 2, 5) for b in (1, 2, 5)),
        )
    )
    table = Table(name="table", variables=("a", "value"), rows=rows[:2])
    computed = Variable(name="value", tunable=False)
    sizes = tuple(Variable(name=n, domain=(1, 2, 5)) for n in _SIZES)
    space = SearchSpace(
        name="t", version=1, variables=(*sizes, computed), constraints=(table,), default=()
    )
    assert deciding_constraints(space).space.constraints == (table,)
