"""The price of a network before anything is measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tilefarm.target import TARGETS

from compile_worker.space import lower_bound_cycles
from driver.network import import_model, load_data
from driver.network.accuracy.price import estimated_cycles
from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL
from driver.network.integer.network import Network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.options import Quantization


def digits(*in_float: str, wide: tuple[str, ...] = ()) -> Network:
    target, graph = TARGETS["sim"], import_model(DEMO_MODEL)
    data = load_data(DEMO_CALIBRATION, graph).inputs
    how = Quantization(keep_float=in_float, wide=wide)
    return partition_network(quantize_for(target, graph, data, how), target)


def test_the_accelerator_s_part_is_the_least_that_it_needs() -> None:
    network = digits()
    least = sum(count * lower_bound_cycles(w, network.target) for w, count in network.workloads())
    assert least < estimated_cycles(network) < 2 * least


def test_a_convolution_in_float_is_dearer() -> None:
    first = next(step for step in digits().steps if step.macs)
    assert estimated_cycles(digits(first.name)) > estimated_cycles(digits()) + first.macs // 10


def test_wide_weights_are_dearer_and_cheaper_than_float() -> None:
    usual, wide = digits(), digits(wide=("*",))
    largest = max((step for step in usual.steps), key=lambda step: step.macs).name
    assert estimated_cycles(usual) < estimated_cycles(wide) < 2.5 * estimated_cycles(usual)
    assert estimated_cycles(wide) < estimated_cycles(digits(largest))


def test_of_a_border_only_what_is_made_counts() -> None:
    """The digits have one of 10 x 10 pixels around 8 x 8, of 16 channels."""
    network = digits()
    (border,) = [step for step in network.steps if step.workload.operator == "border"]
    others = replace(network, steps=tuple(step for step in network.steps if step is not border))
    made = estimated_cycles(network) - estimated_cycles(others)
    assert made == pytest.approx((10 * 10 - 8 * 8) * 16 / 2.5, abs=1)
