"""What would be said of an honest device: whatever it is, it is a false alarm."""

from __future__ import annotations

from tilefarm.artifact import Artifact
from tilefarm.measurement import Counters, Measurement, RunJob
from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.space import lower_bound_cycles
from driver.campaign.measuring import kernel_bounds
from driver.farm.plausible import implausibility


def accusation(work: Workload, target: Target, artifact: Artifact, counters: Counters) -> str:
    """Why nobody would believe these counters of one run of the kernel; empty if all would."""
    bounds = kernel_bounds(artifact, target, lower_bound_cycles(work, target))
    assert bounds.counts, "the compiler counts what a kernel does"
    measurement = Measurement(
        artifact=artifact.digest,
        device="d",
        counters=counters,
        sample_cycles=(counters.cycles,),
    )
    job = RunJob(artifact=artifact.digest, entry="kernel", buffers=())
    return implausibility(measurement, job, bounds, waited_seconds=1.0)
