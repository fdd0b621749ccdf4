"""The machines that this compiler knows."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from compile_worker.machine import Machines
from compile_worker.machines.cpu.machine import processor
from compile_worker.machines.vta.codegen.runtime_abi import RUNTIME
from compile_worker.machines.vta.machine import VTA

MACHINES: Final[Machines] = MappingProxyType(
    {each.kind: each for each in (processor({VTA.kind: RUNTIME}), VTA)}
)
"""By their kind."""
