"""Whole networks on simulators, with the schedules that nothing was measured for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tilefarm.artifact import Artifact
from tilefarm.digest import Digest
from tilefarm.measurement import Measurement
from tilefarm.target import Limits, Target, VtaConfig

from compile_worker.compiler import compile_program
from compile_worker.space import generate
from device_server.runner.runner import Runner
from driver.network.integer.network import Network
from driver.network.integer.qir import QuantGraph
from driver.network.integer.reference import run_integer
from driver.network.partition.partitioner import partition_network
from driver.program.arena import plan_arena
from driver.program.evaluate import differing_samples
from driver.program.model import NetworkProgram, network_program, program_job

PAIRS: Final = Target(
    name="pairs",
    vta=VtaConfig(
        log_batch=1,
        log_block=3,
        log_inp_buff_size=14,
        log_wgt_buff_size=16,
        log_acc_buff_size=16,
    ),
    limits=Limits(alu_mul=True),
)
"""Two samples a vector, eight channels a block, MUL."""

Arrays = Mapping[str, NDArray[Any]]


def program_of(network: Network) -> NetworkProgram:
    """The network as a program."""
    spaces = {workload: generate(workload, network.target) for workload, _ in network.workloads()}
    traces = {w: space.trace(dict(space.space.default)) for w, space in spaces.items()}
    arena = plan_arena(network, {})
    network = arena.network
    job, constants = program_job(network, traces, arena.offsets)
    artifact = compile_program(job)
    assert isinstance(artifact, Artifact), artifact
    return network_program(network, job, artifact, constants, arena.nbytes)


class Simulators:
    """A simulator for each target, started when it is first needed; a context manager.

    Of targets of one name only the last one keeps its simulator.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runners: dict[str, tuple[Target, Runner]] = {}

    def __enter__(self) -> Simulators:
        return self

    def __exit__(self, *_: object) -> None:
        for _target, runner in self._runners.values():
            runner.close()

    def answer(self, program: NetworkProgram, inputs: Arrays) -> dict[str, NDArray[Any]]:
        """The outputs by name, [samples, ...], of inputs in whole batches."""
        for digest, content in program.blobs(inputs).items():
            if not self._place(digest).exists():  # the runner may hold it open
                self._place(digest).write_bytes(content)
        job = program.run_job(inputs, timeout_seconds=60)
        result = self._runner(program.target).run(job, self._place)
        assert isinstance(result, Measurement), result
        shapes = {output.name: (-1, *output.shape[1:]) for output in program.outputs}
        return {
            name: np.frombuffer(content, np.float32).reshape(shapes[name])
            for name, content in result.outputs
        }

    def assert_same(self, quantized: QuantGraph, target: Target, inputs: Arrays) -> Network:
        """One batch through the partitioned network on the device: the reference's bits."""
        network = partition_network(quantized, target)
        batch = {
            name: np.ascontiguousarray(values[: network.batch], np.float32)
            for name, values in inputs.items()
        }
        answers = self.answer(program_of(network), batch)
        assert differing_samples(answers, run_integer(quantized, batch)) == 0
        return network

    def _runner(self, target: Target) -> Runner:
        known = self._runners.get(target.name)
        if known is not None and known[0] == target:
            return known[1]
        if known is not None:
            known[1].close()
        self._runners[target.name] = target, Runner(target=target)
        return self._runners[target.name][1]

    def _place(self, digest: Digest) -> Path:
        return self._folder / digest.hex
