"""The demo's network as a program for any target, with schedules that nothing was measured for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from kit.networks.simulated import program_of
from numpy.typing import NDArray
from tilefarm.target import Target

import driver.network.examples
from driver.network import import_model
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.options import AS_USUAL
from driver.network.rewrites.fold import fold
from driver.program.model import NetworkProgram

_DEMO: Final = Path(driver.network.examples.__path__[0])


def demo_program(target: Target) -> tuple[NetworkProgram, dict[str, NDArray[Any]]]:
    """The program, and one batch for it."""
    graph = fold(import_model(_DEMO / "digits.onnx"))
    with np.load(_DEMO / "calibrate.npz") as images:
        data = {graph.inputs[0].name: images["x"].astype(np.float32)}
    network = partition_network(quantize_for(target, graph, data, AS_USUAL), target)
    batch = {name: np.ascontiguousarray(x[: network.batch]) for name, x in data.items()}
    return program_of(network), batch
