"""What the compiler knows of a kind of machine, as one value: all that depends on it hangs here.

A new machine is a folder with its passes and instructions, and one such value; `lower` and
`compile_kernel` take it beside the others, and no pass or schedule asks which one it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from tilefarm.errors import TargetError
from tilefarm.model import RESERVED
from tilefarm.target import Target

from compile_worker.ir.func import Func
from compile_worker.ir.stmt import Alloc
from compile_worker.ir.visit import find
from compile_worker.pipeline import Pass

HOST: Final = "cpu"
"""The kind of what uses no memory of any other machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One kind of machine.

    Attributes:
        memories: the scopes of the IR that are its own; a function that has buffers there is for
            this machine. The host has none: its memories, "dram" and "local", are everybody's.
        passes: lowering from scheduled loops to what `build` takes.
        build: (lowered function, symbol, target) -> the bytes of an artifact.
        features: (lowered function, target) -> what it will do, counted by name.
    """

    kind: str
    memories: frozenset[str]
    passes: tuple[Pass, ...]
    build: Callable[[Func, str, Target], bytes]
    features: Callable[[Func, Target], dict[str, float]]


Machines: TypeAlias = Mapping[str, Machine]
"""Machines by their kind; one of them is the host."""


def machine_of(func: Func, machines: Machines) -> Machine:
    """The machine that a function is for: the one whose memories it uses, or else the host.

    Raises:
        TargetError: it uses a memory that none of them has.
    """
    scopes = {alloc.buffer.scope for alloc in find(func.body, Alloc)}
    for machine in machines.values():
        if not machine.memories.isdisjoint(scopes):
            return machine
    if strange := scopes - RESERVED:
        known = sorted(name for each in machines.values() for name in each.memories)
        raise TargetError(
            f"no machine that this compiler knows has a memory {min(strange)!r}",
            f"one of {', '.join(known)}, or a compiler with that machine",
        )
    return machines[HOST]
