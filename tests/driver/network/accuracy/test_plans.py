"""Which remedies keep a promise: the fewest that do, each network tried once."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.network.accuracy.plans import PlanCost, RemedyPlan, best_plan, plans_for
from driver.network.accuracy.remedies import SHARED_SHIFTS, Remedy


def layers(*shares: float) -> list[Remedy]:
    return [
        Remedy(layer=f"l{at}", kind="float", share=share, cycles=100, macs=100)
        for at, share in enumerate(shares)
    ]


def names_of(remedies: tuple[Remedy, ...]) -> tuple[str, ...]:
    return tuple(each.layer for each in remedies)


@given(
    st.lists(st.floats(0.01, 1), max_size=12),
    st.floats(0, 5),
    st.lists(st.integers(1, 99), min_size=12),
)
def test_the_plan_keeps_the_limit_and_nothing_is_tried_twice(
    shares: list[float], limit: float, costs: list[int]
) -> None:
    found = [
        Remedy(
            layer=f"l{at}",
            kind="float",
            share=share,
            cycles=costs[at % len(costs)],
            macs=costs[at % len(costs)],
        )
        for at, share in enumerate(shares)
    ]
    tried: Counter[tuple[str, ...]] = Counter()

    def judge(chosen: tuple[Remedy, ...]) -> PlanCost:
        names = names_of(chosen)
        tried[names] += 1
        lost = sum(each.share for each in found if each.layer not in names)
        return PlanCost(points=lost, cycles=len(names))

    plans = plans_for(found, judge, limit)
    best = best_plan(plans, limit)
    assert best is not None  # without any integers nothing is lost
    assert best.points <= limit
    assert best.macs == sum(each.macs for each in found if each.layer in best.floats)
    assert set(tried.values()) == {1}
    if sum(each.share for each in found) <= limit:
        assert best.floats == ()


def test_the_fewest_of_the_worst_and_none_in_vain() -> None:
    found = layers(0.5, 0.1, 0.3, 0.05)
    noise = {"l0": 5.0, "l1": 0.0, "l2": 3.0, "l3": 0.1}

    def judge(chosen: tuple[Remedy, ...]) -> PlanCost:
        names = names_of(chosen)
        lost = sum(noise[name] for name in noise if name not in names)
        return PlanCost(points=lost, cycles=len(names))

    plans = plans_for(found, judge, 1.0)
    best = best_plan(plans, 1.0)
    assert best is not None
    assert best.floats == ("l0", "l2")
    assert best.points == pytest.approx(0.1)


def test_a_score_that_jumps_does_not_keep_half_the_network_in_float() -> None:
    found = layers(*(0.05 for _ in range(20)))

    def judge(chosen: tuple[Remedy, ...]) -> PlanCost:
        names = names_of(chosen)
        enough = {"l13"} <= set(names) and len(names) in (1, 2, 3, 5, 10, 20)
        return PlanCost(points=0.0 if enough else 2.0, cycles=len(names))

    best = best_plan(plans_for(found, judge, 1.0), 1.0)
    assert best is not None
    assert best.floats == ("l13",)


def test_parts_are_tried_without_where_no_layer_is_enough_alone() -> None:
    found = layers(*(0.05 for _ in range(20)))

    def judge(chosen: tuple[Remedy, ...]) -> PlanCost:
        names = names_of(chosen)
        enough = {"l13", "l14"} <= set(names)
        return PlanCost(points=0.0 if enough else 2.0, cycles=len(names))

    best = best_plan(plans_for(found, judge, 1.0), 1.0)
    assert best is not None
    assert len(best.floats) <= 4


def test_the_cheapest_plan_is_that_of_the_fewest_cycles() -> None:
    dear = RemedyPlan(remedies=tuple(layers(0.1)), points=0.0, cycles=900)
    cheap = RemedyPlan(remedies=tuple(layers(0.1, 0.2)), points=0.9, cycles=300)
    broken = RemedyPlan(remedies=(), points=1.1, cycles=100)
    assert best_plan([dear, cheap, broken], 1.0) is cheap


def test_what_cannot_be_kept() -> None:
    def judge(chosen: tuple[Remedy, ...]) -> PlanCost:
        names = names_of(chosen)
        return PlanCost(points=9.0 - len(names), cycles=len(names))

    plans = plans_for(layers(0.5, 0.5), judge, 1.0)
    assert best_plan(plans, 1.0) is None
    assert min(plan.points for plan in plans) == 7.0


@pytest.mark.parametrize(("room", "shares"), [(0.1, True), (0.9, False)])
def test_savings_are_taken_where_what_is_best_keeps_the_limit_with_them(
    room: float, shares: bool
) -> None:
    def judge(chosen: tuple[Remedy, ...]) -> PlanCost:
        shared = SHARED_SHIFTS in chosen
        lost = 2.0 - 1.5 * (len(chosen) - shared) + room * shared
        return PlanCost(points=lost, cycles=100 + 10 * len(chosen) - 50 * shared)

    best = best_plan(plans_for(layers(0.5, 0.5), judge, 1.0, savings=[SHARED_SHIFTS]), 1.0)
    assert best is not None
    assert (best.floats, best.shares_shifts) == (("l0",), shares)


def test_a_layer_in_float_has_no_wide_weights() -> None:
    both = [Remedy(layer="a", kind=kind, share=0.5, cycles=1) for kind in ("wide", "float")]
    tried: list[tuple[Remedy, ...]] = []

    def judge(chosen: tuple[Remedy, ...]) -> PlanCost:
        tried.append(chosen)
        return PlanCost(points=2.0, cycles=1)

    plans_for(both, judge, 1.0)
    assert tried == [(), (both[0],), (both[1],)]


def test_a_plan_in_words() -> None:
    float_a = Remedy(layer="a", kind="float", macs=5)
    wide_b = Remedy(layer="b", kind="wide")
    levels = Remedy(layer="", kind="asymmetric")
    plan = RemedyPlan(remedies=(float_a, levels, wide_b, SHARED_SHIFTS), points=0, cycles=1)
    assert (plan.wide, plan.floats, plan.macs) == (("b",), ("a",), 5)
    assert plan.is_asymmetric
    assert (
        plan.words() == "asymmetric activations; weights of 16 bits: b; in float: a; shifts shared"
    )
    assert plan.counted() == (
        "asymmetric activations, weights of 16 bits in 1 layer, floats in 1 layer, shifts shared"
    )
    nothing = RemedyPlan(remedies=(), points=0, cycles=1)
    assert nothing.words() == nothing.counted() == "all in int8"
