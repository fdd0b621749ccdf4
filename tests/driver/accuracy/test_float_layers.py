"""Which layers to keep in float: the fewest that do, each network tried once."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.accuracy.blame import Blamed, by_cost
from driver.accuracy.float_layers import Outcome, Plan, best_plan, float_layers


def layers(*shares: float, macs: int = 100) -> list[Blamed]:
    return [
        Blamed(name=f"l{at}", share=share, source="weights", macs=macs)
        for at, share in enumerate(shares)
    ]


@given(
    st.lists(st.floats(0.01, 1), max_size=12),
    st.floats(0, 5),
    st.lists(st.integers(1, 99), min_size=12),
)
def test_the_plan_keeps_the_limit_and_nothing_is_tried_twice(
    shares: list[float], limit: float, costs: list[int]
) -> None:
    found = [
        Blamed(
            name=f"l{at}",
            share=share,
            source="weights",
            macs=costs[at % len(costs)] if costs else 0,
        )
        for at, share in enumerate(shares)
    ]
    tried: Counter[tuple[str, ...]] = Counter()

    def judge(names: tuple[str, ...]) -> Outcome:
        tried[names] += 1
        lost = sum(each.share for each in found if each.name not in names)
        return Outcome(points=lost, cycles=len(names))

    plans = float_layers(found, judge, limit)
    best = best_plan(plans, limit)
    assert best is not None  # without any integers nothing is lost
    assert best.points <= limit
    assert best.macs == sum(each.macs for each in found if each.name in best.names)
    assert set(tried.values()) == {1}
    if sum(each.share for each in found) <= limit:
        assert best.names == ()


def test_the_fewest_of_the_worst_and_none_in_vain() -> None:
    found = layers(0.5, 0.1, 0.3, 0.05)
    noise = {"l0": 5.0, "l1": 0.0, "l2": 3.0, "l3": 0.1}

    def judge(names: tuple[str, ...]) -> Outcome:
        lost = sum(noise[name] for name in noise if name not in names)
        return Outcome(points=lost, cycles=len(names))

    plans = float_layers(found, judge, 1.0)
    best = best_plan(plans, 1.0)
    assert best is not None
    assert best.names == ("l0", "l2")
    assert best.points == pytest.approx(0.1)


def test_a_score_that_jumps_does_not_keep_half_the_network_in_float() -> None:
    found = layers(*(0.05 for _ in range(20)))

    def judge(names: tuple[str, ...]) -> Outcome:
        enough = {"l13"} <= set(names) and len(names) in (1, 2, 3, 5, 10, 20)
        return Outcome(points=0.0 if enough else 2.0, cycles=len(names))

    best = best_plan(float_layers(found, judge, 1.0), 1.0)
    assert best is not None
    assert best.names == ("l13",)


def test_parts_are_tried_without_where_no_layer_is_enough_alone() -> None:
    found = layers(*(0.05 for _ in range(20)))

    def judge(names: tuple[str, ...]) -> Outcome:
        enough = {"l13", "l14"} <= set(names)
        return Outcome(points=0.0 if enough else 2.0, cycles=len(names))

    best = best_plan(float_layers(found, judge, 1.0), 1.0)
    assert best is not None
    assert len(best.names) <= 4


def test_the_cheapest_plan_is_that_of_the_fewest_cycles() -> None:
    dear = Plan(names=("a",), points=0.0, macs=1, cycles=900)
    cheap = Plan(names=("b", "c"), points=0.9, macs=5, cycles=300)
    broken = Plan(names=(), points=1.1, macs=0, cycles=100)
    assert best_plan([dear, cheap, broken], 1.0) is cheap


def test_what_cannot_be_kept() -> None:
    def judge(names: tuple[str, ...]) -> Outcome:
        return Outcome(points=9.0 - len(names), cycles=len(names))

    plans = float_layers(layers(0.5, 0.5), judge, 1.0)
    assert best_plan(plans, 1.0) is None
    assert min(plan.points for plan in plans) == 7.0


def test_cheap_layers_come_first() -> None:
    dear = Blamed(name="dear", share=0.5, source="weights", macs=1000)
    cheap = Blamed(name="cheap", share=0.4, source="weights", macs=10)
    free = Blamed(name="free", share=0.01, source="rounding", macs=0)
    assert [each.name for each in by_cost([dear, cheap, free], 1010)] == ["cheap", "free", "dear"]
