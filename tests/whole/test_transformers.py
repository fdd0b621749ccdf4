"""Transformers from the file to the simulator: every answer is the reference's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.networks.onnx_models import saved
from kit.networks.simulated import Simulators
from kit.networks.transformers import vision_transformer
from kit.shared import shared_folder
from tilefarm.target import TARGETS

from driver.network import import_model
from driver.network.graph.ir import Graph
from driver.network.quantize.quantizer import quantize


def random_inputs(graph: Graph, samples: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        each.name: rng.standard_normal((samples, *each.shape[1:])).astype(np.float32)
        for each in graph.inputs
    }


def test_a_vision_transformer(simulators: Simulators, tmp_path: Path) -> None:
    graph = import_model(saved(vision_transformer(), tmp_path))
    data = random_inputs(graph, 2)
    network = simulators.assert_same(quantize(graph, data), TARGETS["sim"], data)
    on_cpu = {step.workload.operator for step in network.steps if step.place == "cpu"}
    assert {"real_normalize", "real_softmax"} <= on_cpu
    assert not on_cpu & {"real_matmul", "real_conv2d"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["attn_core_2048x48x256", "sd_block_tiny_8x8x64"])
def test_attention_of_the_zoo(simulators: Simulators, name: str) -> None:
    folder = shared_folder()
    file = folder / "zoo" / "models" / f"{name}.onnx" if folder else None
    if file is None or not file.exists():
        pytest.skip("the zoo is not next to the repository")
    graph = import_model(file)
    data = random_inputs(graph, 1)
    network = simulators.assert_same(quantize(graph, data), TARGETS["sim"], data)
    there = sum(step.macs for step in network.steps if step.place == "accelerator")
    assert there >= 0.98 * sum(step.macs for step in network.steps)
