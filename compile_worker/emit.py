"""Lowered functions as text and as shared objects, each by the machine that it is for."""

from __future__ import annotations

from tilefarm.target import Target

from compile_worker.ir.func import Func
from compile_worker.machine import Machines, machine_of
from compile_worker.machines.known import MACHINES


def kernel_text(func: Func, name: str, target: Target, machines: Machines = MACHINES) -> str:
    """What a kernel is before it becomes bytes, as text."""
    return machine_of(func, target, machines).text(func, name, target)


def kernel_object(func: Func, name: str, target: Target, machines: Machines = MACHINES) -> bytes:
    """The bytes of an artifact that exports one kernel."""
    return machine_of(func, target, machines).build(func, name, target)
