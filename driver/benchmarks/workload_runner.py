"""One schedule compiled and run in this process: exact cycles, and where they went."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from tilefarm.artifact import Artifact, BuildFailure, CompileJob
from tilefarm.errors import InfraError, TilefarmError
from tilefarm.target import Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from compile_worker.compiler import compile_kernel
from device_server.vta.library.library import EntryResult, RecordedStream, VtaLibrary
from device_server.vta.programs.disassembly import disassemble
from device_server.vta.programs.instructions import InstructionSet
from driver.network import run_workload, sample_inputs
from driver.program.vta.cycle_breakdown import CycleBreakdown, spent

_ENTRY = "kernel"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelMeasurement:
    """A kernel that ran: its cycles by cause, instructions, bytes moved, and whether it is right.

    Attributes:
        streams: programs that the accelerator was given, one for each synchronization.
    """

    spent: CycleBreakdown
    instructions: int
    read_nbytes: int
    written_nbytes: int
    is_right: bool
    streams: int

    @property
    def cycles(self) -> int:
        return self.spent.cycles


@dataclass(frozen=True, slots=True)
class FailedSchedule:
    """A schedule that did not become a kernel that ran: where it ended, and why."""

    stage: str
    why: str
    constraint: str = ""


class WorkloadRunner:
    """Compiles and runs schedules of one workload, on operands that stay the same.

    Nothing is isolated: a kernel that crashes takes the process along, and every kernel stays
    loaded. Meant for a process that ends after one workload.
    """

    def __init__(self, library: VtaLibrary, workload: Workload, target: Target, seed: int) -> None:
        self._library = library
        self.workload = workload
        self.target = target
        self._isa = InstructionSet(target.geometry)
        self._inputs = sample_inputs(workload, seed, target.limits.max_shift)
        self._wanted: dict[str, bytes] = {}
        library.configure(target)

    def cycles(self, trace: Trace) -> int | FailedSchedule:
        """The exact cycles of a schedule; its result is not looked at."""
        code = self._compiled(trace)
        if isinstance(code, FailedSchedule):
            return code
        result = self._run(code)
        return result if isinstance(result, FailedSchedule) else result.counters.cycles

    def measured(self, trace: Trace) -> KernelMeasurement | FailedSchedule:
        """The schedule's cycles by cause, and its result against the reference's."""
        code = self._compiled(trace)
        if isinstance(code, FailedSchedule):
            return code
        self._library.record(True)
        try:
            result = self._run(code)
            streams = self._library.recorded()
        finally:
            self._library.record(False)
        if isinstance(result, FailedSchedule):
            return result
        return self._explained(result, streams)

    def _compiled(self, trace: Trace) -> bytes | FailedSchedule:
        job = CompileJob(workload=self.workload, trace=trace, target=self.target, symbol=_ENTRY)
        match compile_kernel(job):
            case Artifact(code=code):
                return code
            case BuildFailure() as failure:
                return FailedSchedule(failure.stage, failure.why, failure.constraint)

    def _run(self, code: bytes) -> EntryResult | FailedSchedule:
        buffers: list[bytes | int] = [
            self._inputs[spec.name].tobytes() for spec in self.workload.inputs
        ]
        buffers += [spec.nbytes for spec in self.workload.outputs]
        with tempfile.TemporaryDirectory(prefix="tilefarm-bench-") as folder:
            artifact = Path(folder) / "kernel.so"
            artifact.write_bytes(code)
            try:
                return self._library.run_entry(artifact, _ENTRY, buffers)
            except TilefarmError as error:
                return FailedSchedule("run", str(error))

    def _explained(
        self, result: EntryResult, streams: tuple[RecordedStream, ...]
    ) -> KernelMeasurement:
        total = CycleBreakdown()
        for stream in streams:
            again = self._library.run_stream(stream.instructions, stream.before, timeline=True)
            if again.spans is None or again.counters.cycles != stream.counters.cycles:
                raise InfraError(
                    "a program alone takes other cycles than in its kernel",
                    "report it: a fault of ours",
                )
            total += spent(disassemble(stream.instructions, self._isa), again.spans, again.counters)
        counters = result.counters
        return KernelMeasurement(
            spent=total,
            instructions=counters["instructions"],
            read_nbytes=counters["inp_load_nbytes"]
            + counters["wgt_load_nbytes"]
            + counters["acc_load_nbytes"],
            written_nbytes=counters["out_store_nbytes"],
            is_right=self._agrees(result),
            streams=len(streams),
        )

    def _agrees(self, result: EntryResult) -> bool:
        if not self._wanted:
            wanted = run_workload(self.workload, self._inputs)
            self._wanted = {name: array.tobytes() for name, array in wanted.items()}
        found = result.buffers[len(self.workload.inputs) :]
        return all(
            self._wanted[spec.name] == content
            for spec, content in zip(self.workload.outputs, found, strict=True)
        )
