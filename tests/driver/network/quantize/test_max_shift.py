"""Shifts within a target's limit: the same scales, and results that are as near as before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.networks.random_networks import Builder, networks, samples_for
from tilefarm.errors import ModelError
from tilefarm.target import TARGETS, Limits, Target

from driver.network.graph.ir import Dense, Graph
from driver.network.integer.qir import QAffine, QConv2d, QConvTranspose2d, QDense, QuantGraph
from driver.network.integer.reference import run_integer
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.options import AS_USUAL, Quantization
from driver.network.quantize.power_of_two_requantization import ENOUGH_SHIFT, layer_parameters
from driver.network.rewrites.fold import fold

SIM = TARGETS["sim"]
NARROW = TARGETS["sim-pynq-z1"]
NARROW_WITH_MUL = Target(name="mul", limits=Limits(alu_mul=True, max_shift=15))


def widest(quantized: QuantGraph) -> int:
    """The widest shift behind sums of weights."""
    layers = (QConv2d, QConvTranspose2d, QDense, QAffine)
    found = [int(n.op.shift.max()) for n in quantized.nodes if isinstance(n.op, layers)]
    return max(found, default=0)


def faint_dense() -> Graph:
    """A layer whose last channels hardly depend on its input: shifts of 17 would fit."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((20, 16)).astype(np.float32)
    weight[16:] *= 2.0**-11
    b = Builder((1, 16))
    return b.graph(b.put(Dense(weight=weight, bias=np.zeros(20, np.float32)), "x"))


@pytest.mark.parametrize("log_size", range(-14, 1))
def test_what_the_limit_costs_does_not_show(log_size: int) -> None:
    """The most that the sum of 64 full inputs can be wrong by is below half a step."""
    rng = np.random.default_rng(log_size + 20)
    weight = (rng.standard_normal((32, 64)) * 2.0**log_size).astype(np.float32)
    both = [
        layer_parameters(
            weight,
            np.zeros(32, np.float32),
            in_scale=1.0,
            out_scale=1.0,
            block=16,
            max_shift=most,
        )
        for most in (15, 30)
    ]
    assert both[0].shift.max() <= 15
    assert both[0].shift.min() >= min(both[1].shift.min(), ENOUGH_SHIFT)
    gains = [layer.weight * np.exp2(-layer.shift)[:, None] for layer in both]
    assert (np.abs(gains[0] - gains[1]).max(axis=1) * np.sqrt(64) * 128 < 0.5).all()


def test_a_faint_channel_has_the_widest_shift_that_there_is() -> None:
    graph = faint_dense()
    data = samples_for(graph, 1)
    wide = quantize_for(SIM, graph, data, AS_USUAL)
    narrow = quantize_for(NARROW, graph, data, AS_USUAL)
    assert widest(wide) > 15
    assert widest(narrow) == 15
    (a,), (b,) = run_integer(wide, data).values(), run_integer(narrow, data).values()
    scale = next(t.scale for n, t in narrow.tensors.items() if t.scale and n.startswith("t"))
    assert np.abs(a - b).max() <= scale * 1.01


def test_a_network_for_another_target_is_refused() -> None:
    graph = faint_dense()
    wide = quantize_for(SIM, graph, samples_for(graph, 1), AS_USUAL)
    with pytest.raises(ModelError, match="the ALU of sim-pynq-z1 has 15") as refused:
        partition_network(wide, NARROW)
    assert "quantize the network for sim-pynq-z1" in refused.value.hint


@given(case=networks(), log_size=st.integers(-12, 4))
@settings(max_examples=examples(30), deadline=None)
def test_no_layer_of_any_network_goes_beyond_the_limit(
    case: tuple[Graph, int], log_size: int
) -> None:
    """Whatever the size of its inputs is, with MUL and without."""
    graph, seed = case
    graph = fold(graph)
    data = {n: x * np.float32(2.0**log_size) for n, x in samples_for(graph, seed).items()}
    assert widest(quantize_for(NARROW, graph, data, AS_USUAL)) <= 15
    mul = Quantization(requantize="mul")
    assert widest(quantize_for(NARROW_WITH_MUL, graph, data, mul)) <= 15


def test_a_limit_that_nothing_comes_near_changes_nothing() -> None:
    b = Builder((1, 16))
    weight = np.ones((16, 16), np.float32)
    graph = b.graph(b.put(Dense(weight=weight, bias=np.zeros(16, np.float32)), "x"))
    data = samples_for(graph, 3)
    one, other = (quantize_for(t, graph, data, AS_USUAL) for t in (SIM, NARROW))
    assert one.tensors == other.tensors
    limited = replace(SIM, limits=replace(SIM.limits, max_shift=15))
    assert widest(one) == widest(quantize_for(limited, graph, data, AS_USUAL))
