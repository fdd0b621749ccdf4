"""Networks as both exporters of PyTorch write them: imported, quantized, run on the simulator.

They need torch, torchvision and, for the newer exporter, onnxscript, none of which tilefarm needs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.networks.simulated import Simulators
from tilefarm.target import TARGETS

from driver.network import import_model
from driver.network.frontend.seeded import seeded_data
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import FloatArray, GraphInput
from driver.network.quantize.quantizer import quantize

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torchvision", reason="torchvision is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")
NAMES = (
    *("vit", "swin", "convnext", "efficientnet", "regnet", "mobilenet_v3", "shufflenet"),
    *("gpt", "gpt_whole", "bert"),
)


def as_held(values: np.ndarray, given: GraphInput) -> FloatArray:
    reals = np.asarray(values, np.float32) if given.grid is None else given.grid.reals(values)
    return reals.reshape(given.given_shape).transpose(given.axes)


@pytest.mark.slow
@pytest.mark.parametrize("exporter", ["older", "newer"])
@pytest.mark.parametrize("name", NAMES)
def test_a_network_of_pytorch(
    simulators: Simulators, name: str, exporter: str, tmp_path: Path
) -> None:
    from .torch_networks import exported

    file, inputs, answer = exported(name, tmp_path, dynamo=exporter == "newer")
    graph = import_model(file)
    given = {i.name: as_held(x, i) for i, x in zip(graph.inputs, inputs, strict=True)}
    (found,) = run_float(graph, given).values()
    np.testing.assert_allclose(found.reshape(answer.shape), answer, rtol=1e-3, atol=1e-4)
    data = dict(seeded_data(graph, 2).inputs)
    simulators.assert_same(quantize(graph, data), TARGETS["sim"], given)
