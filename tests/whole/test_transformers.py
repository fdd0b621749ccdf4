"""A transformer from its file to the simulator: every answer is the reference's.

Attention of the zoo is tried with its other networks, in test_zoo.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from kit.networks.onnx_models import saved
from kit.networks.simulated import Simulators
from kit.networks.transformers import vision_transformer
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
