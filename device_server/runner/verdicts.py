"""What went wrong in a child, in a status and words: deaths, refusals, wrong outputs."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilefarm.digest import Digest
from tilefarm.errors import InfraError
from tilefarm.measurement import BufferSpec, Status
from tilefarm.plural import plural

from device_server.runner.frames import FailedReply, FailureKind, Fault
from device_server.runner.system_calls import system_call_name

Blob = Callable[[Digest], Path]

_STATUSES: Final = {
    FailureKind.LOAD: Status.LOAD_ERROR,
    FailureKind.RUNTIME: Status.RUN_CRASH,
    FailureKind.MEMORY: Status.RESOURCE_EXCEEDED,
    FailureKind.UNSTABLE: Status.WRONG_RESULT,
    FailureKind.PROTOCOL: Status.INFRA_ERROR,
    FailureKind.UNTIMED: Status.INFRA_ERROR,
}

COMPARED_NBYTES: Final = 1 << 16
"""At a time: larger integers gain nothing, and take more memory."""

_TAKING: Final = frozenset({"clone", "clone3", "dup", "dup2", "dup3", "fork", "vfork"})
"""System calls that take processes and files: a kernel may have none."""


@dataclass(frozen=True, slots=True)
class RunProblem:
    """A RunFailure without what every failure of a job has in common."""

    status: Status
    why: str
    signal: int = 0
    mismatch: str = ""
    untimed: bool = False


def refusal(failed: FailedReply) -> RunProblem:
    """What the living child's refusal means."""
    untimed = failed.kind is FailureKind.UNTIMED
    return RunProblem(_STATUSES[failed.kind], failed.why, untimed=untimed)


def death(number: int, status: int, fault: Fault | None) -> RunProblem:
    """The typed reason of a death by that signal, or by exiting with that status."""
    if number == 0:
        return RunProblem(Status.RUN_CRASH, f"the kernel ended its process with status {status}")
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    if fault is not None and fault.system_call is not None:
        call = system_call_name(fault.system_call)
        kind = Status.RESOURCE_EXCEEDED if call in _TAKING else Status.RUN_CRASH
        return RunProblem(kind, f"forbidden system call {call}{_place(fault)}", number)
    if number == signal.SIGXCPU:
        return RunProblem(Status.RUN_TIMEOUT, "the processor time is used up", number)
    if number in (signal.SIGKILL, signal.SIGXFSZ) or (fault is not None and fault.memory_exhausted):
        return RunProblem(Status.RESOURCE_EXCEEDED, f"{name}: memory or file limit reached", number)
    place = "" if fault is None else f" at address {fault.address:#x}{_place(fault)}"
    return RunProblem(Status.RUN_CRASH, f"{name}{place}", number)


def _place(fault: Fault) -> str:
    if fault.artifact_offset is None:
        return ""
    return f" in the artifact at +{fault.artifact_offset:#x}"


def describe_mismatch(spec: BufferSpec, content: bytes, blob: Blob) -> str:
    """The first wrong byte of an output where the expected bytes are at hand."""
    assert spec.expected is not None
    try:
        file = blob(spec.expected)
        nbytes = file.stat().st_size
        expected = file.read_bytes() if nbytes == len(content) else b""
    except (OSError, KeyError, InfraError):
        return f"output {spec.name}: digest {Digest.of(content).short}, not {spec.expected.short}"
    if nbytes != len(content):
        return f"output {spec.name}: {plural(len(content), 'byte')}, expected {nbytes}"
    differing, first = _differences(content, expected)
    sample, position = divmod(first, spec.nbytes)
    return (
        f"output {spec.name}: {differing} of {plural(len(content), 'byte')} differ, first in"
        f" sample {sample} at byte {position}: {content[first]}, expected {expected[first]}"
    )


def _differences(a: bytes, b: bytes) -> tuple[int, int]:
    """How many bytes differ, and which is the first; quickly, for there may be very many."""
    differing, first = 0, -1
    for begin in range(0, len(a), COMPARED_NBYTES):
        ours, theirs = (one[begin : begin + COMPARED_NBYTES] for one in (a, b))
        if ours == theirs:
            continue
        both = (int.from_bytes(ours) ^ int.from_bytes(theirs)).to_bytes(len(ours))
        if first < 0:
            first = begin + len(both) - len(both.lstrip(b"\0"))
        differing += len(both) - both.count(0)
    return differing, first
