"""No honest schedule of any kind of layer is beyond the bounds that a device is held to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.built import needs_simulator
from tilefarm.artifact import Artifact, CompileJob
from tilefarm.target import TARGETS

from compile_worker.compiler import compile_kernel
from compile_worker.space import generate
from device_server.vta.library.library import VtaLibrary
from driver.benchmarks.workloads import workloads
from driver.network.integer.samples import sample_inputs
from tuner.sampler import Sampler

from .plausible import accusation

pytestmark = needs_simulator


@pytest.mark.parametrize(
    ("name", "default", "every"),
    [
        ("sim", False, 4),
        pytest.param("sim", False, 1, marks=pytest.mark.slow),
        pytest.param("sim", True, 1, marks=pytest.mark.slow),
        pytest.param("sim-pynq-z1", False, 1, marks=pytest.mark.slow),
        pytest.param("sim-pynq-z1", True, 1, marks=pytest.mark.slow),
    ],
)
def test_layers_of_every_kind(name: str, default: bool, every: int, tmp_path: Path) -> None:
    """With a schedule that the sampler drew, or the default one, which is far from any bound.

    All layers, or the first of so many.
    """
    target, library, said = TARGETS[name], VtaLibrary(), []
    library.configure(target)
    for at, (layer, work) in list(enumerate(workloads(target).items()))[::every]:
        made = generate(work, target)
        inputs = sample_inputs(work, 0, target.limits.max_shift)
        given = [inputs[spec.name].tobytes() for spec in work.inputs]
        drawn = Sampler(made.space).sample(1, np.random.default_rng(at))
        (point,) = [dict(made.space.default)] if default else drawn
        artifact = compile_kernel(CompileJob(workload=work, trace=made.trace(point), target=target))
        assert isinstance(artifact, Artifact), artifact
        code = tmp_path / f"{artifact.digest.hex}.so"
        if not code.exists():  # a loaded object must not change
            code.write_bytes(artifact.code)
        result = library.run_entry(code, "kernel", [*given, work.outputs[0].nbytes])
        if why := accusation(work, target, artifact, result.counters):
            said.append(f"{layer}: {why}")
    assert said == []
