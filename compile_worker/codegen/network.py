"""A network's entry: calls of kernels one after the other, until one does not answer 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilefarm.artifact import Call, ProgramJob

from compile_worker.codegen.llvm import PLAIN_CODE, entry_text
from compile_worker.codegen.runtime import handle_and_offset
from compile_worker.codegen.text import FunctionText


class Calls:
    """Writes the calls of a network into its entry."""

    def __init__(self, text: FunctionText, job: ProgramJob) -> None:
        most = max((len(call.arguments) for call in job.calls), default=1)
        self._text = text
        self._handles = text.in_entry(f"alloca [{most} x ptr]")
        self._offsets = text.in_entry(f"alloca [{most} x i64]")
        self._buffers = [handle_and_offset(text, position) for position in range(job.buffers)]

    def call(self, call: Call, kernel: str) -> None:
        """Call a kernel with parts of the buffers."""
        text = self._text
        for position, (buffer, nbytes) in enumerate(call.arguments):
            handle, start = self._buffers[buffer]
            slot = text.op(f"getelementptr ptr, ptr {self._handles}, i64 {position}")
            text.do(f"store ptr {handle}, ptr {slot}")
            place = text.op(f"getelementptr i64, ptr {self._offsets}, i64 {position}")
            text.do(f"store i64 {text.op(f'add i64 {start}, {nbytes}')}, ptr {place}")
        answered(text, f"@{kernel}(ptr {self._handles}, ptr {self._offsets}) noinline")


def answered(text: FunctionText, call: str) -> None:
    """Call a function; unless it answers 0, that is the entry's answer too."""
    answer = text.op(f"call i32 {call}")
    with text.when(text.op(f"icmp ne i32 {answer}, 0")):
        text.do(f"ret i32 {answer}")
        text.begin(text.fresh_label())


def ended(job: ProgramJob, text: FunctionText) -> str:
    """The whole entry."""
    text.do("ret i32 0")
    return entry_text(job.entry, text, attributes=PLAIN_CODE)


def plain_network(job: ProgramJob, kernels: Mapping[str, str]) -> str:
    """The entry where nothing stands between two kernels; `kernels` are functions by symbol."""
    text = FunctionText(job.entry)
    calls = Calls(text, job)
    for call in job.calls:
        calls.call(call, kernels[call.kernel])
    return ended(job, text)


def alone(job: ProgramJob) -> list[ProgramJob]:
    """A network for each of the entries that make a part of the calls."""
    pairs = zip(job.call_entries, job.call_spans, strict=True)
    return [replace(job, entry=entry, calls=job.calls[span], stages=()) for entry, span in pairs]
