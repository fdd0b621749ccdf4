"""Cycles that no schedule of a layer goes below."""

from __future__ import annotations

from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.generated import Bounds
from compile_worker.machines.vta.costs import costs_of
from compile_worker.machines.vta.space.layer import GemmLayer, layer_of
from compile_worker.machines.vta.space.vector_layer import VectorLayer, vector_layer_of


def bounds_of(workload: Workload, target: Target) -> Bounds:
    """The ideal is one cycle per block x block tile and input vector.

    With the default block these are MACs / 256, absent channels included.
    """
    layer = vector_layer_of(workload) or layer_of(workload)
    if layer is None:
        return Bounds()
    return Bounds(layer.gemm_cycles, _least(layer, workload, target))


def _least(layer: GemmLayer | VectorLayer, workload: Workload, target: Target) -> int:
    """What the busiest of compute, load and store modules needs."""
    bus, costs = target.timing.bus_nbytes, costs_of(target)
    store = costs.store.element
    if isinstance(layer, VectorLayer):
        return max(
            layer.gemm_cycles + layer.other_cycles,
            layer.loading_cycles(target),
            store * layer.output_vectors,
        )
    vector = costs.vector(layer.epilogue.vector_cycles, layer.epilogue.immediates)
    read = layer.read_vectors * target.geometry.inp_nbytes + workload.inputs[1].nbytes
    return max(
        layer.gemm_cycles + vector * layer.output_vectors,
        read // bus,
        store * layer.output_vectors * layer.epilogue.out_planes,
    )
