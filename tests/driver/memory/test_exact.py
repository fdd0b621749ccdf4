"""The solver's plans: known optima, valid, and never longer than what was searched."""

from __future__ import annotations

import builtins
from dataclasses import replace
from typing import Any

import pytest
from tilefarm.errors import SettingsError

from driver.benchmarks.memory.scratchpad_graphs import GraphKind, scratchpad_graph
from driver.memory import GOOD, Infeasible, Mode, Plan, plan, validate
from driver.memory.instance import instance_of


def test_without_the_solver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("ortools"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(SettingsError, match="needs OR-Tools, which is not installed"):
        plan(scratchpad_graph(9, 3), mode=Mode.EXACT, effort=100)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_it_is_valid_and_no_longer_than_the_search(seed: int) -> None:
    pytest.importorskip("ortools", reason="OR-Tools is not installed")
    kind = GraphKind(is_free=bool(seed % 2), is_backed=bool(seed % 3))
    problem = scratchpad_graph(seed, 3 + seed % 4, kind)
    searched = plan(problem, effort=2000)
    found = plan(problem, mode=Mode.EXACT, effort=2000, seconds=20)
    if isinstance(searched, Infeasible):
        pytest.skip("this graph has no plan")
    assert isinstance(found, Plan), found
    assert validate(problem, found) is GOOD
    assert found.makespan_ticks <= searched.makespan_ticks
    assert found.gap == 1.0, "the solver proves its plans of so small graphs"


@pytest.mark.slow
def test_its_bound_is_that_of_any_order_of_transfers() -> None:
    """Tried against every sequence that the search may begin with, on a graph that spills."""
    pytest.importorskip("ortools", reason="OR-Tools is not installed")
    from driver.memory.exact import solved
    from driver.memory.search import searched

    instance = instance_of(scratchpad_graph(9, 7))
    best = searched(instance, is_placed=False, bound=0, tries=40_000, seed=1, seconds=60.0).best[0]
    exact = solved(instance, at_most=best.makespan, seconds=20)
    assert exact.is_optimal
    assert exact.bound_ticks == best.makespan
    roomy = replace(instance, capacities=(0,) * len(instance.capacities))
    assert solved(roomy, at_most=best.makespan, seconds=20).bound_ticks < exact.bound_ticks
