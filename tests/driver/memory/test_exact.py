"""The solver's plans: known optima, valid, and never longer than what was searched."""

from __future__ import annotations

import builtins
import itertools
import random
from dataclasses import replace
from typing import Any

import pytest
from tilefarm.errors import SettingsError

from driver.benchmarks.memory.scratchpad_graphs import GraphKind, scratchpad_graph
from driver.memory import (
    GOOD,
    Buffer,
    Engine,
    EngineKind,
    Infeasible,
    Memory,
    Mode,
    Op,
    Plan,
    Problem,
    Transfer,
    plan,
    validate,
)
from driver.memory.instance import instance_of
from driver.memory.schedule import Move, token_of
from driver.memory.search import decoded


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
    found = plan(problem, mode=Mode.EXACT, effort=2000, seconds=120)
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
    exact = solved(instance, at_most=best.makespan, seconds=120)
    assert exact.is_optimal
    assert exact.bound_ticks == best.makespan
    roomy = replace(instance, capacities=(0,) * len(instance.capacities))
    assert solved(roomy, at_most=best.makespan, seconds=120).bound_ticks < exact.bound_ticks


def tiny(seed: int) -> Problem:
    """Three or four operations in a memory that is short, some repeatable, some in place."""
    rng = random.Random(seed)
    names = [f"b{at}" for at in range(rng.choice((3, 4)))]
    sizes = {name: rng.choice((2, 4)) for name in names}
    ops = []
    for at, name in enumerate(names):
        reads = tuple(rng.sample(names[:at], min(at, rng.choice((1, 2)))))
        pairs = tuple((each, name) for each in reads if sizes[each] == sizes[name])
        ops.append(
            Op(
                name=name,
                duration_ticks=rng.randint(1, 3),
                reads=reads,
                writes=(name,),
                repeatable=rng.random() < 0.7,
                in_place=pairs if rng.random() < 0.7 else (),
            )
        )
    ops.append(Op(name="end", reads=(names[0], names[-1])))
    way = Transfer(engine="dma", latency_ticks=rng.choice((1, 6)))
    return Problem(
        buffers=tuple(Buffer(name=name, nbytes=nbytes) for name, nbytes in sizes.items()),
        ops=tuple(ops),
        memories=(
            Memory(
                name="fast",
                capacity_nbytes=rng.choice((8, 10)),
                alignment=1,
                backing="far",
                save=way,
                read=way,
            ),
            Memory(name="far"),
        ),
        engines=(
            Engine(name="e", in_order=False),
            Engine(name="dma", kind=EngineKind.DMA, in_order=False),
        ),
        barriers=rng.choice((0, 0, 1)),
    )


def shortest(problem: Problem) -> int:
    """The makespan of the best of all sequences of steps, each with up to two moves in between."""
    instance = instance_of(problem)
    steps = range(len(instance.steps))
    orders = [
        order
        for order in itertools.permutations(steps)
        if all(
            order.index(before) < order.index(at)
            for at in steps
            for before in instance.steps[at].before
        )
    ]
    moves = [
        (token_of(gone, buffer), token_of(back, buffer))
        for buffer in range(len(instance.buffers))
        for gone, back in ((Move.LEAVE, Move.RETURN), (Move.DROP, Move.AGAIN))
    ]
    best = []
    for order in orders:
        best.append(order)
        for (gone, back), at, to in itertools.product(moves, steps, range(len(steps) + 1)):
            if at < to:
                best.append((*order[:at], gone, *order[at:to], back, *order[to:]))
    found = (decoded(instance, tokens) for tokens in best)
    return min(each.makespan for each in found if each is not None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_repeats_and_places_are_as_good_as_trying_everything(seed: int) -> None:
    pytest.importorskip("ortools", reason="OR-Tools is not installed")
    problem = tiny(seed)
    found = plan(problem, mode=Mode.EXACT, effort=2000, seconds=120)
    if isinstance(found, Infeasible):
        assert found.op, "an operation that has no room at all"
        return
    assert validate(problem, found) is GOOD
    assert found.gap == 1.0
    assert found.makespan_ticks <= shortest(problem)
