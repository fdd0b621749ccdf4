"""Small VTA programs, written by hand as text, with the memory they run on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from kit.kernels.assembly import parse
from tilefarm.target import Target

from device_server.vta.programs.disassembly import assemble
from device_server.vta.programs.instructions import InstructionSet
from device_server.vta.programs.program import Program, Regions, with_target

SIM: Final = Target(name="sim")

ROWS: Final = 4
UOPS_AT, DATA_AT, WEIGHTS_AT, OUT_AT, DRAM_NBYTES = 64, 256, 512, 1024, 2048

DENSE: Final = f"""
  0 compute load.uop sram=0 dram={UOPS_AT // 4:#x} y=1 x=1 stride=1
  1 compute gemm.reset uops=0..1 loops={ROWS}x1 dst=1,0 src=0,0 wgt=0,0
  2 load load.inp sram=0 dram={DATA_AT // 16:#x} y=1 x={ROWS} stride={ROWS}
  3 load load.wgt sram=0 dram={WEIGHTS_AT // 256:#x} y=1 x=1 stride=1 push=compute
  4 compute gemm uops=0..1 loops={ROWS}x1 dst=1,0 src=1,0 wgt=0,0 pop=load
  5 compute alu.shr.imm uops=0..1 loops={ROWS}x1 dst=1,0 src=1,0 imm=4 push=store
  6 store store.out sram=0 dram={OUT_AT // 16:#x} y=1 x=4 stride=4 pop=compute push=compute
  7 compute nop.load.uop pop=store
  8 compute finish
"""  # fmt: skip
"""Four rows of 16 times a 16x16 matrix, shifted by 4."""

DENSE_CYCLES: Final = 168


def stream(text: str, target: Target = SIM) -> Any:
    """The words of instructions written as text, uint64[n, 2]."""
    return assemble(parse(text), InstructionSet(target.geometry))


def dense_program(
    text: str = DENSE, target: Target = SIM, meta: Mapping[str, Any] | None = None
) -> Program:
    """The program of a text on the memory of DENSE, with DENSE's right memory afterwards."""
    rng = np.random.default_rng(3)
    data = rng.integers(-128, 128, (ROWS, 16), dtype=np.int8)
    weights = rng.integers(-128, 128, (16, 16), dtype=np.int8)
    out = (data.astype(np.int32) @ weights.astype(np.int32).T >> 4).astype(np.int8)
    before = np.zeros(DRAM_NBYTES, np.uint8)
    before[DATA_AT : DATA_AT + data.size] = data.reshape(-1).view(np.uint8)
    before[WEIGHTS_AT : WEIGHTS_AT + weights.size] = weights.reshape(-1).view(np.uint8)
    after = before.copy()
    after[OUT_AT : OUT_AT + out.size] = out.reshape(-1).view(np.uint8)
    return Program(
        instructions=stream(text, target),
        dram_nbytes=DRAM_NBYTES,
        before=Regions.changed(np.zeros_like(before), before),
        after=Regions.changed(before, after),
        meta=with_target({"name": "dense", **(meta or {})}, target),
    )
