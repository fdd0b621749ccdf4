"""Whole networks as programs: where every tensor lies, and what is read back from a folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from kit.examples import examples
from kit.networks.random_networks import Builder, conv, networks, samples_for, window
from tilefarm.artifact import Artifact, CompileJob, ProgramJob
from tilefarm.errors import ModelError
from tilefarm.measurement import Role
from tilefarm.target import TARGETS
from tilefarm.trace import Trace

from driver.memory import Plan, plan
from driver.network.graph.ir import Concat, Graph
from driver.network.integer.network import Network
from driver.network.integer.reference import run_network, run_workload
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize
from driver.program.arena import plan_arena, program_problem
from driver.program.deployed import read_program
from driver.program.model import NetworkProgram, alignment, network_program, program_job
from driver.tune.output import OutputFolder

SIM = TARGETS["sim"]


def network_of(graph: Graph, seed: int) -> Network:
    return partition_network(quantize(graph, samples_for(graph, seed)), SIM)


def execute(
    network: Network, job: ProgramJob, constants: bytes, arena_nbytes: int, x: np.ndarray
) -> bytes:
    """The program in numpy, on flat buffers as a device has them; the first output's bytes."""
    sizes = [arena_nbytes, 0, x.nbytes]
    sizes += [network.tensors[o.tensor].nbytes for o in network.outputs]
    buffers = [bytearray(size) for size in sizes]
    buffers[1], buffers[2] = bytearray(constants), bytearray(x.tobytes())
    kernels = {kernel.symbol: kernel for kernel in job.kernels}
    for call in job.calls:
        workload = kernels[call.kernel].workload
        places = dict(zip(workload.tensors, call.arguments, strict=True))
        inputs = {}
        for spec in workload.inputs:
            buffer, offset = places[spec]
            view = np.frombuffer(buffers[buffer], np.uint8)[offset : offset + spec.nbytes]
            inputs[spec.name] = view.copy().view(spec.dtype.value).reshape(spec.shape)
        results = run_workload(workload, inputs)
        for spec in workload.outputs:
            buffer, offset = places[spec]
            buffers[buffer][offset : offset + spec.nbytes] = results[spec.name].tobytes()
    return bytes(buffers[3])


@settings(max_examples=examples(25), deadline=None)
@given(networks())
def test_a_program_on_shared_memory_gives_what_the_network_gives(drawn: tuple[Graph, int]) -> None:
    graph, seed = drawn
    network = network_of(graph, seed)
    arena = plan_arena(network, {})
    network = arena.network
    job, constants = program_job(network, {}, arena.offsets)
    name = network.inputs[0].name
    x = np.ascontiguousarray(samples_for(graph, seed + 1)[name][: network.batch], np.float32)
    wanted = run_network(network, {name: x})
    found = execute(network, job, constants, arena.nbytes, x)
    assert found == wanted[network.outputs[0].name].astype(np.float32).tobytes()


@settings(max_examples=examples(15), deadline=None)
@given(networks())
def test_every_tensor_is_aligned_and_the_arena_is_no_larger_than_without_sharing(
    drawn: tuple[Graph, int],
) -> None:
    network = network_of(*drawn)
    arena = plan_arena(network, {})
    network = arena.network
    job, constants = program_job(network, {}, arena.offsets)
    views = {view.name for view in network.tensors_of("view")}
    for step, call in zip(network.steps, job.calls, strict=True):
        for name, (_, offset) in zip((*step.inputs, *step.outputs), call.arguments, strict=True):
            assert offset % (SIM.lanes.block if name in views else 256) == 0
    assert len(constants) % 256 == 0
    assert arena.picture.bound_nbytes <= arena.nbytes
    told = plan(program_problem(network))
    assert isinstance(told, Plan)
    assert (told.order, told.peak_nbytes("arena")) == (
        tuple(step.name for step in network.steps),
        arena.nbytes,
    )
    assert {r.name for r in arena.picture.rects} == {
        t.name for t in network.tensors_of("intermediate")
    }


def test_tensors_begin_at_multiples_of_the_largest_element() -> None:
    """The accelerator's addresses count elements; a tile of 32 by 32 weights has 1024 bytes."""
    wide = replace(SIM, vta=replace(SIM.geometry, log_block=5))
    assert (alignment(SIM), alignment(wide)) == (256, 1024)
    b, rng = Builder((1, 32, 2, 2)), np.random.default_rng(0)
    first = b.put(conv(rng, 32, 32, window(1)), "x")
    graph = b.graph(b.put(conv(rng, 32, 32, window(1)), first))
    network = partition_network(quantize(graph, samples_for(graph, 0)), wide)
    arena = plan_arena(network, {})
    network = arena.network
    job, constants = program_job(network, {}, arena.offsets)
    offsets = [offset for call in job.calls for _, offset in call.arguments]
    assert max(offsets) > 1024
    assert {offset % 1024 for offset in [*offsets, len(constants)]} == {0}


def test_parts_of_a_concatenation_lie_in_it_and_live_together() -> None:
    """The first part is read before the second is made: neither may move or be overwritten."""
    rng = np.random.default_rng(0)
    b = Builder((1, 16, 4, 4))
    first = b.put(conv(rng, 16, 16, window(1)), "x")
    second = b.put(conv(rng, 16, 32, window(1)), first)
    third = b.put(conv(rng, 32, 16, window(1)), second)
    network = network_of(b.graph(b.put(Concat(), third, first, second)), 0)
    arena = plan_arena(network, {})
    network = arena.network
    job, _ = program_job(network, {}, arena.offsets)
    places = {
        name: place
        for step, call in zip(network.steps, job.calls, strict=True)
        for name, place in zip((*step.inputs, *step.outputs), call.arguments, strict=True)
    }
    begin = arena.offsets["t3"]
    assert [places[name] for name in (third, first, second)] == [
        (0, begin),
        (0, begin + 256),
        (0, begin + 512),
    ]
    (whole,) = [rect for rect in arena.picture.rects if rect.name == "t3"]
    assert (whole.begin_step, whole.end_step, whole.nbytes) == (1, 5, 1024)


def a_program() -> NetworkProgram:
    rng = np.random.default_rng(0)
    builder = Builder((1, 3, 6, 6), "small")
    graph = builder.graph(builder.put(conv(rng, 3, 16, window(3, pad=1)), "x"))
    network = network_of(graph, 0)
    arena = plan_arena(network, {})
    network = arena.network
    job, constants = program_job(network, {}, arena.offsets)
    artifact = Artifact(job=job.digest, code=b"\x7fELF", symbols=(job.entry,))
    return network_program(network, job, artifact, constants, arena.nbytes)


def test_equal_workloads_are_one_kernel_and_buffers_have_their_order() -> None:
    program = a_program()
    assert program.calls
    x = {"x": np.zeros((5, 3, 6, 6), np.float32)}
    job = program.run_job(x, timeout_seconds=0.1)
    assert [b.role for b in job.buffers] == [Role.SCRATCH, Role.CONSTANT, Role.INPUT, Role.OUTPUT]
    assert job.samples == 5
    assert job.buffers[2].nbytes * 5 == x["x"].nbytes
    assert {b.content for b in job.buffers if b.content} <= set(program.blobs(x))


def test_the_schedule_of_each_workload_is_in_its_kernel() -> None:
    from kit.networks.random_networks import Builder, conv, window
    from tilefarm.trace import Step

    rng = np.random.default_rng(0)
    builder = Builder((1, 16, 6, 6), "small")
    layer = conv(rng, 16, 16, window(3, pad=1))
    first = builder.put(layer, "x")
    graph = builder.graph(builder.put(layer, first))
    network = network_of(graph, 0)
    trace = Trace((Step("mark"),))
    arena = plan_arena(network, {})
    network = arena.network
    job, _ = program_job(network, {w: trace for w, _ in network.workloads()}, arena.offsets)
    kernels: dict[str, CompileJob] = {kernel.symbol: kernel for kernel in job.kernels}
    assert len(kernels) == len(job.kernels)
    for kernel in job.kernels:
        assert (kernel.trace == trace) == (kernel.workload.operator == "conv2d")


def test_a_program_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    program = a_program()
    assert program.calls
    folder = OutputFolder(tmp_path)
    folder.write_program(program, {"tilefarm": "test"})
    assert read_program(folder.program) == program
    manifest = json.loads((folder.program / "manifest.json").read_text())
    assert manifest["digest"] == program.digest.hex
    assert manifest["target_digest"] == SIM.digest.hex
    assert [b["role"] for b in manifest["buffers"]] == ["scratch", "constant", "input", "output"]


@pytest.mark.parametrize("file", ["network.so", "weights.bin", "manifest.json"])
def test_a_damaged_program_is_refused(file: str, tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path)
    folder.write_program(a_program(), {})
    content = (folder.program / file).read_bytes()
    (folder.program / file).write_bytes(content[:-9])
    with pytest.raises(ModelError) as refused:
        read_program(folder.program)
    assert file in refused.value.what
    assert refused.value.hint


@pytest.mark.parametrize("text", ["{}", "[]", '{"schema": 1}', '{"schema": 99}'])
def test_a_manifest_of_something_else_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ModelError):
        read_program(tmp_path)
    with pytest.raises(ModelError, match="No such file"):
        read_program(tmp_path / "absent")


def test_a_program_is_held_to_the_multiplications_of_its_layers() -> None:
    program = a_program()
    assert program.bounds.least_cycles == 0, "nobody knows"
    first, *others = program.calls
    known = replace(program, calls=(replace(first, ideal_cycles=7), *others))
    assert known.bounds.least_cycles == 7
    assert known.bounds.least_profile_cycles == (7, *(0 for _ in others))
