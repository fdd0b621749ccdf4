"""Every integer operator, alone, at the ends of its parameters: kernel calls mean the same bits."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.networks.integer_operators import OPERATORS, STRATEGIES, cases
from kit.networks.simulated import PAIRS
from tilefarm.target import TARGETS, Target

from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.program.evaluate import differing_samples


def test_every_operator_has_cases() -> None:
    assert set(STRATEGIES) == OPERATORS


def agrees(operator: type, target: Target, data: st.DataObject) -> None:
    case = data.draw(cases(operator))
    graph, inputs = case.graph(), case.inputs()
    network = partition_network(graph, target)
    assert differing_samples(run_network(network, inputs), run_integer(graph, inputs)) == 0


@pytest.mark.parametrize("target", [TARGETS["sim-mul"], PAIRS], ids=lambda target: target.name)
@pytest.mark.parametrize("operator", STRATEGIES, ids=lambda operator: operator.__name__)
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_calls_mean_what_the_operator_means(
    operator: type, target: Target, data: st.DataObject
) -> None:
    agrees(operator, target, data)


@pytest.mark.slow
@pytest.mark.parametrize("target", [TARGETS["sim-mul"], PAIRS], ids=lambda target: target.name)
@pytest.mark.parametrize("operator", STRATEGIES, ids=lambda operator: operator.__name__)
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_calls_mean_what_the_operator_means_on_many(
    operator: type, target: Target, data: st.DataObject
) -> None:
    agrees(operator, target, data)
