"""Small networks in ONNX's own arithmetic on processors: partitioned, and right as they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from kit.networks.onnx_models import model, node, saved
from numpy.typing import NDArray
from tilefarm.processors import AARCH64, X86_64, processor
from tilefarm.target import Host, Target, load_target

from driver.network.frontend.onnx import import_model
from driver.network.graph.ir import Graph
from driver.network.integer.network import Network
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.options import Quantization

VNNI: Final = processor("cpu with VNNI", Host(triple=X86_64, cpu="cascadelake"))
"""In quads where they are int8, and in pairs where they are not."""
I8MM: Final = processor("cpu with i8mm", Host(triple=AARCH64, cpu="neoverse-n2"))
QUADS: Final = (
    VNNI,
    load_target("cpu:neoverse-n1"),
    processor("cpu without sdot", Host(triple=AARCH64, cpu="cortex-a53")),
    I8MM,
)
RNG = np.random.default_rng(5)


def weights(*shape: int) -> NDArray[np.float32]:
    return RNG.normal(0, 1, shape).astype(np.float32)


def graph_of(
    tmp_path: Path, nodes: Sequence[onnx.NodeProto], x: tuple[int, ...], **values: Any
) -> Graph:
    """From `x` to `y`."""
    made = model(nodes, values, x=x)
    return import_model(saved(made, tmp_path))


def partitioned(graph: Graph, target: str | Target) -> Network:
    """The network, of which every output is that of the integer network, bit for bit."""
    (given,) = graph.inputs
    data = RNG.normal(0, 1, (4 * graph.batch, *given.shape[1:])).astype(np.float32)
    aim = target if isinstance(target, Target) else load_target(target)
    quantized = quantize_for(aim, graph, {given.name: data}, Quantization())
    network = partition_network(quantized, aim)
    for start in range(0, len(data), graph.batch):
        part = {given.name: data[start : start + graph.batch]}
        wanted, found = run_integer(quantized, part), run_network(network, part)
        for name, values in wanted.items():
            np.testing.assert_array_equal(found[name], values)
    return network


def operators(network: Network) -> list[str]:
    return [step.workload.operator for step in network.steps]


def of_one_zero(
    tmp_path: Path, aim: Target, weight: tuple[int, ...], size: int = 6, **attrs: Any
) -> Network:
    """A QLinearConv of uint8 weights, of which some are at the ends, less 131; right as it is."""
    channels = weight[1] * attrs.get("group", 1)
    values = {
        "w": RNG.choice(np.array([0, 1, 130, 255], np.uint8), weight),
        "w.zero": np.array(131, np.uint8),
        "w.scale": np.array(0.004, np.float32),
        "scale": np.array(0.02, np.float32),
        "zero": np.array(119, np.uint8),
    }
    grid = ["scale", "zero"]
    nodes = [
        node("QuantizeLinear", ["x", *grid], "q"),
        node("QLinearConv", ["q", *grid, "w", "w.scale", "w.zero", *grid], "c", **attrs),
        node("DequantizeLinear", ["c", *grid], "y"),
    ]
    path = saved(model(nodes, values, x=(1, channels, 7, size)), tmp_path)
    quantized = quantize_for(aim, import_model(path, keeps_integers=True), None, Quantization())
    network = partition_network(quantized, aim)
    data = {"x": RNG.normal(0, 2, (1, channels, 7, size)).astype(np.float32)}
    wanted, found = run_integer(quantized, data), run_network(network, data)
    np.testing.assert_array_equal(found["y"], wanted["y"])
    return network
