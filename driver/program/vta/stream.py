"""What the accelerator is given in the end: instructions, the cycles of each, and their causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tilefarm.measurement import TimelineEvent
from tilefarm.target import Target
from tilefarm.trace import Trace
from tilefarm.workload import Workload

from device_server.vta.library.library import VtaLibrary
from device_server.vta.programs.disassembly import disassemble, line
from device_server.vta.programs.instructions import Instruction, InstructionSet
from driver.program.vta.cycle_breakdown import CycleBreakdown, spent
from driver.program.vta.recording import record_workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A kernel's programs after one checked run on the simulator.

    Attributes:
        lines: one an instruction: number, what it is, and the cycles in which it ran.
        timeline: of the first program.
    """

    lines: tuple[str, ...]
    spent: CycleBreakdown
    timeline: tuple[TimelineEvent, ...]


def stream_of(workload: Workload, trace: Trace, target: Target) -> Stream:
    """Run a schedule once on sample inputs, its result compared with the reference.

    Raises:
        SettingsError: the schedule does not compile for the workload.
        InfraError: the simulator is not built, or the result is wrong.
    """
    library = VtaLibrary()
    name = workload.name
    programs = record_workload(library, workload, trace, target, seed=0, name=name)
    lines: list[str] = []
    total = CycleBreakdown()
    timelines: list[tuple[TimelineEvent, ...]] = []
    for program in programs:
        library.configure(target)
        result = library.run_stream(program.instructions, program.image(), timeline=True)
        assert result.spans is not None
        records = disassemble(program.instructions, InstructionSet(target.geometry))
        total += spent(records, result.spans, result.counters)
        timelines.append(result.timeline)
        lines += _lines(records, result.spans)
    return Stream(lines=tuple(lines), spent=total, timeline=timelines[0])


def _lines(records: Sequence[Instruction], spans: npt.NDArray[np.int64]) -> Iterator[str]:
    texts = [line(number, record) for number, record in enumerate(records)]
    width = max(map(len, texts))
    for text, (begin, end) in zip(texts, spans.tolist(), strict=True):
        yield f"{text.ljust(width)}  {begin:9d} ..{end:9d}"
