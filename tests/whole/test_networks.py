"""Whole networks, from the float graph to the simulator: every answer is the reference's."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.networks.random_networks import layer_chains, networks, samples_for
from kit.networks.simulated import PAIRS, Simulators
from kit.networks.wide import all_wide
from tilefarm.target import TARGETS, Target

from driver.network import import_model
from driver.network.examples.topologies import SMALL_TOPOLOGIES, random_images, write_topology
from driver.network.graph.ir import Graph
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.options import Quantization, Requantize
from driver.network.quantize.quantizer import quantize
from driver.network.rewrites.fold import fold

SIM: Final = TARGETS["sim"]


@pytest.mark.parametrize("target", [TARGETS["sim-mul"], PAIRS], ids=lambda target: target.name)
@settings(max_examples=3, deadline=None)
@given(case=networks(), requantize=st.sampled_from(["shift", "mul"]))
def test_any_small_network(
    simulators: Simulators, target: Target, case: tuple[Graph, int], requantize: Requantize
) -> None:
    graph, seed = case
    graph = fold(graph)
    data = samples_for(graph, seed)
    how = Quantization(requantize=requantize)
    simulators.assert_same(quantize_for(target, graph, data, how), target, data)


@pytest.mark.parametrize("target", [TARGETS["sim-pynq-z1"], PAIRS], ids=lambda t: t.name)
@settings(max_examples=2, deadline=None)
@given(case=networks())
def test_any_small_network_with_wide_weights(
    simulators: Simulators, target: Target, case: tuple[Graph, int]
) -> None:
    graph, seed = fold(case[0]), case[1]
    data = samples_for(graph, seed)
    quantized = quantize_for(target, graph, data, all_wide(graph, activations=False))
    simulators.assert_same(quantized, target, data)


@pytest.mark.parametrize("target", [SIM, TARGETS["sim-pynq-z1"], PAIRS], ids=lambda t: t.name)
@settings(max_examples=2, deadline=None)
@given(case=layer_chains(), weights=st.booleans())
def test_any_small_network_with_wide_activations(
    simulators: Simulators, target: Target, case: tuple[Graph, int], weights: bool
) -> None:
    graph, seed = fold(case[0]), case[1]
    data = samples_for(graph, seed)
    how = all_wide(graph, weights=weights)
    simulators.assert_same(quantize_for(target, graph, data, how), target, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL_TOPOLOGIES)
def test_a_large_network_is_on_the_accelerator_but_for_its_ends(
    simulators: Simulators, name: str, tmp_path: Path
) -> None:
    model = tmp_path / f"{name}.onnx"
    write_topology(name, model)
    graph = import_model(model)
    data = {graph.inputs[0].name: random_images(2)}
    network = simulators.assert_same(quantize(graph, data), SIM, data)
    on_cpu = [step.workload.operator for step in network.steps if step.place == "cpu"]
    assert [each for each in on_cpu if each != "border"] == ["quantize_windows", "softmax"]
