"""From a network to what is searched: one task for each distinct workload of the accelerator."""

from __future__ import annotations

from tilefarm.workload import Workload

from compile_worker.space import generate, ideal_cycles
from driver.graph.network import Network
from driver.graph.reference import run_workload
from driver.graph.samples import sample_inputs
from driver.search.measuring import Task, kernel_buffers


def tasks_of(network: Network, seed: int) -> dict[str, Task]:
    """The tasks by name in order of first use; inputs and right answers are made from the seed."""
    tasks = (
        _task(network, workload, count, _mean_macs(network, workload), seed)
        for workload, count in network.workloads()
    )
    return {task.name: task for task in tasks}


def _mean_macs(network: Network, workload: Workload) -> int:
    """Useful MACs of one run; layers that share a workload may use unlike shares of its lanes."""
    macs = [step.macs for step in network.steps if step.workload == workload]
    return sum(macs) // len(macs)


def _task(network: Network, workload: Workload, count: int, macs: int, seed: int) -> Task:
    generated = generate(workload, network.target)
    inputs = sample_inputs(workload, seed)
    buffers, blobs = kernel_buffers(workload, inputs, run_workload(workload, inputs))
    return Task(
        workload=workload,
        count=count,
        macs=macs,
        ideal_cycles=ideal_cycles(workload, network.target),
        space=generated.space,
        trace=generated.trace,
        target=network.target,
        blobs=blobs,
        buffers=buffers,
    )
