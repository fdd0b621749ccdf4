"""Cycles that no schedule of a layer goes below."""

from __future__ import annotations

from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.machines.vta.costs import costs_of
from compile_worker.machines.vta.space.layer import GemmLayer, layer_of
from compile_worker.machines.vta.space.vector_layer import VectorLayer, vector_layer_of


def ideal_cycles(workload: Workload, target: Target) -> int:
    """Cycles of the multiplication alone: one per block x block tile and input vector.

    With the default block these are MACs / 256, absent channels included.
    """
    del target
    return _layer(workload).gemm_cycles


def lower_bound_cycles(workload: Workload, target: Target) -> int:
    """What the busiest of compute, load and store modules needs when everything is moved once."""
    layer = _layer(workload)
    bus, costs = target.timing.bus_nbytes, costs_of(target)
    store = costs.store_element
    if isinstance(layer, VectorLayer):
        return max(
            layer.gemm_cycles + layer.other_cycles,
            layer.loading_cycles(target),
            store * layer.output_vectors,
        )
    vector = costs.vector(layer.epilogue.vector_cycles, layer.epilogue.immediates)
    read = layer.read_vectors * target.vta.inp_nbytes + workload.inputs[1].nbytes
    return max(
        layer.gemm_cycles + vector * layer.output_vectors,
        read // bus,
        store * layer.output_vectors * layer.epilogue.out_planes,
    )


def _layer(workload: Workload) -> GemmLayer | VectorLayer:
    layer = vector_layer_of(workload) or layer_of(workload)
    if layer is None:
        raise ValueError(f"{workload.operator} does not run on the accelerator")
    return layer
