"""Every integer operator, alone, at the ends of its parameters: the device gives the same bits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.networks.integer_operators import STRATEGIES, cases
from kit.networks.simulated import PAIRS, Simulators
from tilefarm.target import TARGETS, Target


def agrees(simulators: Simulators, operator: type, target: Target, data: st.DataObject) -> None:
    case = data.draw(cases(operator))
    simulators.assert_same(case.graph(), target, case.inputs())


@pytest.mark.parametrize("operator", STRATEGIES, ids=lambda operator: operator.__name__)
@settings(max_examples=2, deadline=None)
@given(data=st.data())
def test_the_device_means_what_the_operator_means(
    simulators: Simulators, operator: type, data: st.DataObject
) -> None:
    agrees(simulators, operator, PAIRS, data)


@pytest.mark.slow
@pytest.mark.parametrize("target", [TARGETS["sim-mul"], PAIRS], ids=lambda target: target.name)
@pytest.mark.parametrize("operator", STRATEGIES, ids=lambda operator: operator.__name__)
@settings(max_examples=examples(12), deadline=None)
@given(data=st.data())
def test_the_device_means_what_the_operator_means_on_many(
    simulators: Simulators, operator: type, target: Target, data: st.DataObject
) -> None:
    agrees(simulators, operator, target, data)
