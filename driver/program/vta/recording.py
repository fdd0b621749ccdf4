"""A kernel compiled, run once in this process, and kept as programs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefarm.artifact import BuildFailure, CompileJob
from tilefarm.errors import InfraError, SettingsError
from tilefarm.target import Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_kernel
from device_server.vta.library.library import EntryResult, RecordedStream, VtaLibrary
from device_server.vta.programs.disassembly import assemble, disassemble
from device_server.vta.programs.instructions import InstructionSet
from device_server.vta.programs.program import Program, Regions, with_target
from device_server.vta.programs.squeeze import squeezed
from device_server.vta.programs.stream_statistics import statistics
from driver.network import run_workload, sample_inputs

_ENTRY = "kernel"


def record_workload(
    library: VtaLibrary, workload: Workload, trace: Trace, target: Target, *, seed: int, name: str
) -> tuple[Program, ...]:
    """The programs of one call of a kernel on sample inputs: one for each synchronization.

    Every program carries its cycles and the memory afterwards; the kernel's result was compared
    with the reference.

    Raises:
        SettingsError: the schedule does not compile for this workload.
        InfraError: the result is wrong, or a program alone answers otherwise than in its kernel.
    """
    job = CompileJob(workload=workload, trace=trace, target=target, symbol=_ENTRY)
    artifact = compile_kernel(job)
    if isinstance(artifact, BuildFailure):
        raise SettingsError(
            f"{name} does not compile: {artifact.stage}: {artifact.why}",
            "another schedule: --trace default, or --predicted",
        )
    library.configure(target)
    inputs = sample_inputs(workload, seed, target.limits.max_shift)
    result, streams = _run(library, artifact.code, workload, inputs)
    _check_result(workload, result, inputs, name)
    about: dict[str, Any] = {
        "kind": "kernel",
        "exercises": f"{workload.operator}, compiled by tilefarm",
        "params": {"workload": workload.name, "trace": trace.digest.hex, "seed": seed},
    }
    programs = []
    for number, stream in enumerate(streams):
        named = name if len(streams) == 1 else f"{name}_{number}"
        program = program_of(stream, target, {"name": named, **about})
        programs.append(_with_spans(library, program, named))
    return tuple(programs)


def program_of(stream: RecordedStream, target: Target, meta: dict[str, Any]) -> Program:
    """A recorded synchronization as a program that promises what was seen."""
    isa = InstructionSet(target.geometry)
    recorded = disassemble(stream.instructions, isa)
    records, (before, after) = squeezed(recorded, (stream.before, stream.after), target.geometry)
    counted = statistics(records, target.geometry)
    counts = {
        "n_insns": counted.instructions,
        "n_load": counted.load,
        "n_gemm": counted.gemm,
        "n_alu": counted.alu,
        "n_store": counted.store,
        "n_nop": counted.nop,
        "gemm_uops": counted.gemm_uops,
        "reset_uops": counted.reset_uops,
        "alu_uops": counted.alu_uops,
        "load_bytes": sum(counted.load_nbytes.values()),
        "store_bytes": counted.store_nbytes,
    }
    return Program(
        instructions=assemble(records, isa),
        dram_nbytes=before.size,
        before=Regions.changed(np.zeros_like(before), before),
        after=Regions.changed(before, after),
        cycles=stream.counters.cycles,
        accumulator_writes=counted.gemm_uops + counted.reset_uops + counted.alu_uops,
        meta=with_target({**meta, **counts}, target),
    )


def _run(
    library: VtaLibrary, code: bytes, workload: Workload, inputs: Mapping[str, NDArray[Any]]
) -> tuple[EntryResult, tuple[RecordedStream, ...]]:
    buffers: list[bytes | int] = [inputs[spec.name].tobytes() for spec in workload.inputs]
    buffers += [spec.nbytes for spec in workload.outputs]
    with tempfile.TemporaryDirectory(prefix="tilefarm-vta-") as folder:
        artifact = Path(folder) / "kernel.so"
        artifact.write_bytes(code)
        library.record(True)
        try:
            result = library.run_entry(artifact, _ENTRY, buffers)
        finally:
            streams = library.recorded()
            library.record(False)
    return result, streams


def _check_result(
    workload: Workload, result: EntryResult, inputs: Mapping[str, NDArray[Any]], name: str
) -> None:
    wanted = run_workload(workload, inputs)
    found = result.buffers[len(workload.inputs) :]
    for spec, content in zip(workload.outputs, found, strict=True):
        if wanted[spec.name].tobytes() != content:
            raise InfraError(f"{name}: output {spec.name} is not the reference's", "report it")


def _with_spans(library: VtaLibrary, program: Program, name: str) -> Program:
    """The program with its timeline, after it has answered alone as it did in its kernel."""
    library.configure(program.target)
    again = library.run_stream(program.instructions, program.image(), timeline=True)
    expected = program.expected_image()
    if again.counters.cycles != program.cycles or (again.dram != expected).any():
        raise InfraError(f"{name}: alone the program answers otherwise than in its kernel")
    return replace(program, spans=again.spans)
