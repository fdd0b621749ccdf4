"""Additions and pooling on the simulator, held to the rules of both hardware designs."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from kit.built import needs_simulator
from kit.kernels.nests import SIM, scaled_add, window
from tilefarm.artifact import Artifact, CompileJob
from tilefarm.target import Target, VtaConfig
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_kernel
from compile_worker.space import generate
from device_server.vta.library.library import Strictness, VtaLibrary
from driver.network.integer.reference import run_workload
from driver.network.integer.samples import sample_inputs
from tuner.sampler import Sampler

from .plausible import accusation

NO_PAD = (0, 0, 0, 0)


pytestmark = needs_simulator


@pytest.fixture(scope="module")
def library() -> VtaLibrary:
    return VtaLibrary()


def cycles(library: VtaLibrary, work: Workload, trace: Trace, target: Target, into: Path) -> int:
    """Compile and run a workload; fails unless it is right. The exact cycles."""
    made = compile_kernel(CompileJob(workload=work, trace=trace, target=target))
    assert isinstance(made, Artifact), made
    inputs = sample_inputs(work, 0)
    kernel = into / f"{made.digest.hex}.so"
    if not kernel.exists():  # a loaded object must not change
        kernel.write_bytes(made.code)
    buffers: list[bytes | int] = [inputs[spec.name].tobytes() for spec in work.inputs]
    result = library.run_entry(kernel, "kernel", [*buffers, work.outputs[0].nbytes])
    found = np.frombuffer(result.buffers[-1], np.int8).reshape(work.outputs[0].shape)
    np.testing.assert_array_equal(found, run_workload(work, inputs)["out"])
    assert accusation(work, target, made, result.counters) == ""
    return result.counters.cycles


def layers(batch: int, block: int) -> dict[str, Workload]:
    unit = (2, batch, block)
    return {
        "residual": scaled_add((2, 3, 5, 4, batch, block)),
        "residual of vectors": scaled_add((2, 6, batch, block), shift=18, lo=-128),
        "shrinking pool": window("window_max2d", 3, (9, 10), unit=unit),
        "pool that overlaps": window(
            "window_max2d", 2, (8, 7), (2, 3), (1, 1), (0, 1, 1, 0), 0, unit
        ),
        "pool that does not": window("window_max2d", 2, (10, 9), (5, 4), (5, 4), NO_PAD, 0, unit),
        "average": window("window_sum2d", 3, (9, 10), unit=unit),
        "global": window("window_sum2d", 4, (5, 6), (5, 6), (1, 1), NO_PAD, 9, unit),
        "global of one block": window("window_sum2d", 1, (3, 2), (3, 2), (1, 1), NO_PAD, 7, unit),
    }


@pytest.mark.parametrize("strictness", [Strictness.CHISEL, Strictness.HLS])
@pytest.mark.parametrize("name", layers(1, 16))
def test_sampled_points_keep_the_rules_of_the_hardware(
    name: str, strictness: Strictness, library: VtaLibrary, tmp_path: Path
) -> None:
    work = layers(1, 16)[name]
    library.configure(SIM, strictness=strictness)
    made = generate(work, SIM)
    points = Sampler(made.space).sample(2, np.random.default_rng(len(name)))
    for point in [dict(made.space.default), *points]:
        cycles(library, work, made.trace(point), SIM, tmp_path)


def drawn(rng: Random) -> Workload:
    """A layer of any kind and shape whose windows all see the image."""
    blocks, batches = rng.choice([1, 2, 3, 4, 6, 8]), rng.choice([1, 1, 2])
    image = (rng.randint(1, 20), rng.randint(1, 20))
    operator = rng.choice(["scaled_add", "window_max2d", "window_sum2d"])
    if operator == "scaled_add":
        pixels = rng.choice([(), image[:1], image])
        shape = (batches, blocks, *pixels, 1, 16)
        return scaled_add(shape, rng.randint(0, 20), rng.choice([-128, 0]))
    kernel = (rng.randint(1, min(7, image[0])), rng.randint(1, min(7, image[1])))
    stride = (rng.randint(1, 4), rng.randint(1, 4))
    top, left, bottom, right = (rng.randint(0, kernel[at % 2] - 1) for at in range(4))
    pad, shift = (top, left, bottom, right), rng.randint(0, 12)
    return window(operator, blocks, image, kernel, stride, pad, shift, (batches, 1, 16))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_any_shape_keeps_the_rules_of_the_hardware(
    seed: int, library: VtaLibrary, tmp_path: Path
) -> None:
    work = drawn(Random(seed))
    made = generate(work, SIM)
    points = Sampler(made.space).sample(2, np.random.default_rng(seed))
    for point in [dict(made.space.default), *points]:
        library.configure(SIM, strictness=[Strictness.CHISEL, Strictness.HLS][seed % 2])
        cycles(library, work, made.trace(point), SIM, tmp_path)


OTHERS = {
    "two rows": Target(name="other", vta=VtaConfig(log_batch=1)),
    "eight lanes": Target(
        name="other",
        vta=VtaConfig(
            log_block=3, log_inp_buff_size=13, log_wgt_buff_size=16, log_acc_buff_size=15
        ),
    ),
    "32 lanes": Target(name="other", vta=VtaConfig(log_block=5)),
}


@pytest.mark.parametrize("target", OTHERS.values(), ids=OTHERS.keys())
def test_other_accelerators(target: Target, library: VtaLibrary, tmp_path: Path) -> None:
    library.configure(target)
    for name in ("residual", "shrinking pool", "average"):
        work = layers(target.lanes.batch, target.lanes.block)[name]
        made = generate(work, target)
        cycles(library, work, made.trace(dict(made.space.default)), target, tmp_path)


def test_resnet_18_pools_and_adds_in_few_cycles(library: VtaLibrary, tmp_path: Path) -> None:
    library.configure(SIM)

    def taken(work: Workload) -> int:
        made = generate(work, SIM)
        return cycles(library, work, made.trace(dict(made.space.default)), SIM, tmp_path)

    assert taken(window("window_max2d", 4, (112, 112))) < 300_000
    assert taken(window("window_sum2d", 32, (7, 7), (7, 7), (1, 1), NO_PAD)) < 5_000
    shapes = [(4, 56), (8, 28), (16, 14), (32, 7)]
    additions = [taken(scaled_add((1, co, size, size, 1, 16))) for co, size in shapes]
    assert 2 * sum(additions) < 335_000
