"""From a network to what is searched: one task for each distinct workload of the accelerator."""

from __future__ import annotations

from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.space import generate, ideal_cycles, lower_bound_cycles
from driver.campaign.measuring import Task, kernel_arguments
from driver.network import Network, run_workload, sample_inputs


def tasks_of(network: Network, seed: int) -> dict[str, Task]:
    """The tasks by name in order of first use; inputs and right answers are made from the seed."""
    tasks = (
        task_of(
            workload, network.target, count=count, macs=_mean_macs(network, workload), seed=seed
        )
        for workload, count in network.workloads()
    )
    return {task.name: task for task in tasks}


def task_of(workload: Workload, target: Target, *, count: int, macs: int, seed: int) -> Task:
    """One workload as a task; see `Task` for `count` and `macs`."""
    generated = generate(workload, target)
    inputs = sample_inputs(workload, seed, target.limits.max_shift)
    return Task(
        workload=workload,
        count=count,
        macs=macs,
        ideal_cycles=ideal_cycles(workload, target),
        space=generated.space,
        trace=generated.trace,
        target=target,
        arguments=kernel_arguments(workload, inputs, run_workload(workload, inputs)),
        least_cycles=lower_bound_cycles(workload, target),
    )


def _mean_macs(network: Network, workload: Workload) -> int:
    """Useful MACs of one run; layers that share a workload may use unlike shares of its lanes."""
    macs = [step.macs for step in network.steps if step.workload == workload]
    return sum(macs) // len(macs)
