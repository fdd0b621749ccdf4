"""Operators next to the accelerator, from an ONNX file to the simulator: the reference's bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.networks.gated import gated
from kit.networks.onnx_models import saved
from kit.networks.simulated import PAIRS, Simulators
from tilefarm.target import TARGETS, Target

from driver.network import import_model
from driver.network.graph.float_run import run_float
from driver.network.integer.reference import run_integer
from driver.network.quantize.quantizer import quantize

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("target", [TARGETS["sim"], PAIRS], ids=lambda target: target.name)
@pytest.mark.parametrize("channels", [7, 20])
def test_a_gated_network(
    simulators: Simulators, channels: int, target: Target, tmp_path: Path
) -> None:
    graph = import_model(saved(gated(channels), tmp_path))
    data = {"x": RNG.standard_normal((4, 3, 10, 9)).astype(np.float32)}
    quantized = quantize(graph, data, block=target.lanes.block)
    one = {"x": data["x"][:1]}
    (wanted,) = run_integer(quantized, one).values()
    (exact,) = run_float(graph, one).values()
    assert np.abs(wanted - exact).max() < 0.1 * np.abs(exact).max()
    network = simulators.assert_same(quantized, target, one)
    assert {"lookup", "product", "gather"} <= {s.workload.operator for s in network.steps}
