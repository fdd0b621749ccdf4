"""The labels of least cost, beside all that there are."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from driver.network.partition.least_cost import Table, least_cost_labels


def cost(tables: list[Table], labels: tuple[int, ...]) -> float:
    return sum(float(each.costs[tuple(labels[v] for v in each.variables)]) for each in tables)


def some_tables(rng: np.random.Generator, sizes: list[int], count: int) -> list[Table]:
    """Of one to three variables each; some labels do not go together, those that are 0 do."""
    tables = []
    for _ in range(count):
        taken = rng.permutation(len(sizes))[: rng.integers(1, 4)]
        variables = tuple(sorted(int(each) for each in taken))
        costs = rng.integers(0, 20, [sizes[each] for each in variables]).astype(np.float64)
        costs[rng.random(costs.shape) < 0.2] = np.inf
        costs[(0,) * costs.ndim] = 15
        tables.append(Table(variables, costs))
    return tables


@pytest.mark.parametrize("seed", range(40))
def test_no_labels_cost_less(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [int(each) for each in rng.integers(1, 4, 7)]
    tables = some_tables(rng, sizes, 9)
    found = least_cost_labels(sizes, tables)
    assert cost(tables, tuple(found)) == min(
        cost(tables, labels) for labels in product(*map(range, sizes))
    )


@pytest.mark.parametrize("seed", range(20))
def test_with_small_tables_alone_it_is_no_worse_than_label_0(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [3] * 12
    tables = some_tables(rng, sizes, 40)
    found = least_cost_labels(sizes, tables, most=9)
    assert cost(tables, tuple(found)) <= cost(tables, (0,) * 12) == 15 * 40


def test_a_variable_that_nothing_is_said_of_has_label_0() -> None:
    assert least_cost_labels([1, 3], []) == [0, 0]
