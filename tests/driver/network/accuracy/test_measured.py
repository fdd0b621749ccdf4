"""Plans are compared by measured cycles, where what they differ in can be measured in time."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import pytest
from kit.manual_clock import ManualClock
from tilefarm.target import TARGETS
from tilefarm.workload import Workload

from compile_worker.space import lower_bound_cycles
from driver.network import import_model, load_data
from driver.network.accuracy.measured import Priced, with_measured_cycles
from driver.network.accuracy.plans import RemedyPlan
from driver.network.accuracy.price import estimated_cycles
from driver.network.accuracy.remedies import Remedy
from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL
from driver.network.integer.network import Network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.options import Quantization

PLAIN = Quantization(activations="symmetric", fit_weights=False, correct_bias=False)


@pytest.fixture(scope="module")
def networks() -> list[Network]:
    """The demo's: with 8 bits, and with 16 bits for the weights of the first or the last layer."""
    target, graph = TARGETS["sim"], import_model(DEMO_MODEL)
    data = load_data(DEMO_CALIBRATION, graph).inputs
    plain = partition_network(quantize_for(target, graph, data, PLAIN), target)
    names = [step.name for step in plain.steps if step.macs]
    ways = (
        Quantization(activations="symmetric", fit_weights=False, correct_bias=False, wide=(name,))
        for name in (names[0], names[-1])
    )
    return [
        plain,
        *(partition_network(quantize_for(target, graph, data, way), target) for way in ways),
    ]


def plans_of(networks: list[Network], *points: float) -> list[RemedyPlan]:
    """One without remedies, and one for each other network."""
    remedies = ((), *((Remedy(layer=f"l{at}", kind="wide"),) for at in range(1, len(networks))))
    return [
        RemedyPlan(remedies=some, points=lost, cycles=estimated_cycles(network))
        for some, lost, network in zip(remedies, points, networks, strict=True)
    ]


def only(network: Network, others: list[Network]) -> set[Workload]:
    """What a network has more often than others."""
    counts = [dict(each.workloads()) for each in others]
    return {w for w, n in network.workloads() if any(each.get(w, 0) < n for each in counts)}


class Bound:
    """Measures the least cycles, but for some kernels that are slow, each in five seconds."""

    def __init__(self, slow: AbstractSet[Workload] = frozenset()) -> None:
        self.clock = ManualClock()
        self.slow = slow
        self.asked: list[Workload] = []

    def __call__(self, workload: Workload) -> int:
        self.asked.append(workload)
        self.clock.advance(5)
        least = lower_bound_cycles(workload, TARGETS["sim"])
        return round(least * (100 if workload in self.slow else 1.5))

    def priced(
        self, plans: list[RemedyPlan], networks: list[Network], most_seconds: float = 60.0
    ) -> Priced:
        return with_measured_cycles(
            plans, networks, 1.0, self, self.clock, most_seconds=most_seconds
        )


def test_what_turns_out_slower_is_not_taken(networks: list[Network]) -> None:
    plans = plans_of(networks, 5.0, 0.5, 0.5)
    first = Bound().priced(plans, networks)
    assert first.best is not None
    assert first.best.basis == "measured"
    cheap = next(at for at, plan in enumerate(plans) if plan.remedies == first.best.remedies)
    other = 3 - cheap
    slow = Bound(only(networks[cheap], [networks[other]]))
    second = slow.priced(plans, networks, most_seconds=10_000)
    assert second.best is not None
    assert second.best.remedies == plans[other].remedies
    assert len({*slow.asked}) == len(slow.asked), "each kernel once"
    for plan, before in zip(second.plans, plans, strict=True):
        assert plan.cycles > before.cycles
        assert (plan.points, plan.remedies) == (before.points, before.remedies)


def test_kernels_that_plans_differ_in_come_first(networks: list[Network]) -> None:
    plans = plans_of(networks, 5.0, 0.5, 0.5)
    everything = Bound()
    everything.priced(plans, networks, most_seconds=10_000)
    counts = [dict(network.workloads()) for network in networks]
    differ = [len({each.get(w, 0) for each in counts}) > 1 for w in everything.asked]
    assert differ == sorted(differ, reverse=True)
    assert 0 < sum(differ) < len(differ)
    heard: list[tuple[int, int]] = []
    few = Bound()
    priced = with_measured_cycles(
        plans,
        networks,
        1.0,
        few,
        few.clock,
        most_seconds=5.0 * sum(differ),
        heard=lambda done, kernels: heard.append((done, kernels)),
    )
    assert {plan.basis for plan in priced.plans} == {"differences"}
    assert heard == [(at, len(differ)) for at in range(sum(differ))]


def test_plans_for_which_there_is_no_time_stay_estimates(networks: list[Network]) -> None:
    """The two cheapest are compared, and the third is left alone, which costs more by estimate."""
    plans = plans_of(networks, 0.5, 0.5, 0.5)
    first, second, third = sorted(range(3), key=lambda at: plans[at].cycles)
    two = [networks[first], networks[second]]
    pair = {w for network in two for w in only(network, two)}
    bound = Bound()
    priced = bound.priced(plans, networks, most_seconds=5.0 * len(pair))
    assert {*bound.asked} == pair
    assert priced.plans[third] == plans[third]
    assert priced.plans[first].basis == priced.plans[second].basis == "differences"
    assert priced.best in (priced.plans[first], priced.plans[second])


def test_without_time_or_simulator_estimates_are_compared(networks: list[Network]) -> None:
    plans = plans_of(networks, 5.0, 0.5, 0.5)
    best = min(plans[1:], key=lambda plan: plan.cycles)
    short = Bound()
    assert short.priced(plans, networks, most_seconds=5) == Priced(tuple(plans), best)
    assert len(short.asked) == 1
    none = with_measured_cycles(plans, networks, 1.0, lambda _workload: None, ManualClock())
    assert none == Priced(tuple(plans), best)


def test_where_nothing_is_compared_nothing_is_measured(networks: list[Network]) -> None:
    bound = Bound()
    alone = plans_of(networks[:1], 0.0)
    assert bound.priced(alone, networks[:1]) == Priced(tuple(alone), alone[0])
    broken = plans_of(networks, 5.0, 4.0, 3.0)
    assert bound.priced(broken, networks) == Priced(tuple(broken), None)
    assert not bound.asked


def test_plans_that_break_the_promise_stay_estimates(networks: list[Network]) -> None:
    plans = plans_of(networks, 5.0, 0.5, 4.0)
    priced = Bound().priced(plans, networks, most_seconds=10_000)
    assert [plan.basis for plan in priced.plans] == ["measured", "measured", "estimated"]
    assert priced.plans[2] == plans[2]
