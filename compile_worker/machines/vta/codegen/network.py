"""A network's entry: kernels one after the other, in as few runs of the accelerator as can be.

    conv(...)                              queue conv
    conv(...)                       ->     store -> compute -> load: one token each
    softmax(...)                           queue conv
                                           synchronize
                                           softmax

Between two kernels on the accelerator, tokens order the first one's stores before the second one's
loads; the host waits only before it has work of its own, or when the instruction queue or the
micro-op memory would overflow.

Beside it there is an entry for each call, or each stage of several, which makes that and waits:
what a profile is of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilefarm.artifact import ProgramJob
from tilefarm.target import Target

from compile_worker.codegen.network import Calls, alone, answered, ended
from compile_worker.codegen.text import FunctionText
from compile_worker.ir.stmt import Module
from compile_worker.machines.vta.codegen.runtime_abi import WAIT_CYCLES
from compile_worker.machines.vta.limits import instructions_fit, uops_fit
from compile_worker.machines.vta.passes.check_instructions import CLOSING, StreamSize


@dataclass(frozen=True, slots=True)
class QueuedCall:
    """The private function of one call, and what it queues; None when it works on the host."""

    symbol: str
    stream: StreamSize | None


BARRIER: tuple[tuple[str, Module, Module], ...] = (
    ("VTADepPush", Module.STORE, Module.COMPUTE),
    ("VTADepPop", Module.STORE, Module.COMPUTE),
    ("VTADepPush", Module.COMPUTE, Module.LOAD),
    ("VTADepPop", Module.COMPUTE, Module.LOAD),
)
"""What makes the next kernel's loads wait for all stores queued so far."""

BARRIER_INSTRUCTIONS = 3
"""At most: a token that finds no instruction to ride on takes one that does nothing."""


def network_text(job: ProgramJob, queued: Sequence[QueuedCall]) -> str:
    """LLVM text of the entry; the first answer that is not 0 ends it and is its own answer."""
    text = FunctionText(job.entry)
    command = text.op("call ptr @VTATLSCommandHandle()")
    calls, after = Calls(text, job), endings(queued, job.target)
    for call, kernel, ending in zip(job.calls, queued, after, strict=True):
        calls.call(call, kernel.symbol)
        if ending == "wait":
            text.do(f"call void @VTASynchronize(ptr {command}, i32 {WAIT_CYCLES})")
        elif ending == "barrier":
            for function, source, sink in BARRIER:
                tokens = f"i32 {source.value}, i32 {sink.value}"
                answered(text, f"@{function}(ptr {command}, {tokens})")
    return ended(job, text)


def call_texts(job: ProgramJob, queued: Sequence[QueuedCall]) -> list[str]:
    """LLVM text of an entry for each call or stage: a network that makes it alone."""
    pairs = zip(alone(job), job.call_spans, strict=True)
    return [network_text(part, queued[span]) for part, span in pairs]


def endings(queued: Sequence[QueuedCall], target: Target) -> list[str]:
    """What follows each call: "wait", "barrier", or nothing after work on the host."""
    found: list[str] = []
    uops = instructions = 0
    for position, call in enumerate(queued):
        if call.stream is None:
            found.append("")
            continue
        uops += call.stream.uops
        instructions += call.stream.instructions + BARRIER_INSTRUCTIONS
        following = queued[position + 1].stream if position + 1 < len(queued) else None
        if following is None or not _fits(following, uops, instructions, target):
            found.append("wait")
            uops = instructions = 0
        else:
            found.append("barrier")
    return found


def _fits(stream: StreamSize, uops: int, instructions: int, target: Target) -> bool:
    """Whether one more kernel fits into a run that holds so much already."""
    more = instructions + stream.instructions + CLOSING
    return uops_fit(target, uops + stream.uops) is None and instructions_fit(more) is None
