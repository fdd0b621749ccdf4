"""What the compiler knows of a kind of machine, as one value: all that depends on it hangs here.

A new machine is a folder with its passes and instructions, and one such value; `lower` and
`compile_kernel` take it beside the others, and no pass or schedule asks which one it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from tilefarm.artifact import ProgramJob
from tilefarm.errors import TargetError
from tilefarm.model import CPU
from tilefarm.target import Target
from tilefarm.workload import Workload

from compile_worker.generated import Bounds, Generated
from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc
from compile_worker.ir.visit import find
from compile_worker.pipeline import Pass

HOST: Final = CPU
"""The kind of what uses no memories but the host's, "dram" and "local"."""


def nothing_to_choose(workload: Workload, target: Target) -> None:
    """The spaces of a machine without any."""
    del workload, target


def nothing_counted(func: Func, target: Target) -> dict[str, float]:
    """The features of a machine whose kernels nobody counts."""
    del func, target
    return {}


def nobody_knows(workload: Workload, target: Target) -> Bounds:
    """The bounds of a machine that has no estimate."""
    del workload, target
    return Bounds()


def kernels_alone(job: ProgramJob, kernels: Mapping[str, Func]) -> bytes:
    """The program of a machine that runs no networks."""
    del kernels
    raise TargetError(
        f"a {job.target.model.kind} runs kernels, and no programs of several",
        "one kernel at a time, or give its Machine a program",
    )


Program: TypeAlias = Callable[[ProgramJob, Mapping[str, Func]], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One kind of machine.

    Attributes:
        passes: lowering from scheduled loops to what `build` takes.
        text: (lowered function, symbol, target) -> what it is before it becomes bytes, to read.
        build: (lowered function, symbol, target) -> the bytes of an artifact.
        features: (lowered function, target) -> what it will do, counted by name, for cost models.
        space: (workload, target) -> what there is to choose; None where a workload is compiled as
            it is. A SpaceError says why not even the smallest tiles fit.
        bounds: (workload, target) -> cycles that no schedule goes below.
        program: (job, lowered functions by symbol) -> the bytes of a network that calls them.
    """

    kind: str
    passes: tuple[Pass, ...]
    text: Callable[[Func, str, Target], str]
    build: Callable[[Func, str, Target], bytes]
    features: Callable[[Func, Target], dict[str, float]] = nothing_counted
    space: Callable[[Workload, Target], Generated | None] = nothing_to_choose
    bounds: Callable[[Workload, Target], Bounds] = nobody_knows
    program: Program = kernels_alone


Machines: TypeAlias = Mapping[str, Machine]
"""Machines by their kind; one of them is the host."""


def machine_on(target: Target, machines: Machines, kind: str = "") -> Machine:
    """The machine of a kind; the target's own where none is named.

    Raises:
        TargetError: this compiler does not know it.
    """
    kind = kind or target.model.kind
    if kind not in machines:
        raise TargetError(
            f"target {target.name} is a machine of the kind {kind!r}, unknown to this compiler",
            f"one of {', '.join(machines)}, or a compiler with that machine",
        )
    return machines[kind]


def machine_of(func: Func, target: Target, machines: Machines) -> Machine:
    """The machine that a function is for: the host, or the target's own if it uses its memories.

    Raises:
        TargetError: this compiler does not know it.
    """
    is_for_host = not any(alloc.buffer.on_chip for alloc in find(func.body, Alloc))
    return machines[HOST] if is_for_host else machine_on(target, machines)
