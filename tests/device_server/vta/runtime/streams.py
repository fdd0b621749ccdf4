"""Instruction streams written by hand: modules take turns, so nothing is left to chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from tilefarm.target import VtaConfig
from tilefarm.vta_isa import AluOp, Memory

from device_server.vta.programs.instructions import (
    Alu,
    Finish,
    Gemm,
    Instruction,
    InstructionSet,
    Tokens,
    Transfer,
    Uop,
    module_of,
)

from .vta_functions import encoded_uop

ORDER = ("load", "compute", "store")
UOPS_ADDRESS = 4096
"""Where `memory` puts micro-ops, in bytes."""

MIN, MAX, ADD, SHR, MUL = AluOp


def load(memory: int, count: int = 1, **more: Any) -> Transfer:
    fields: dict[str, Any] = {"y_size": 1, "x_size": count, "x_stride": count, **more}
    return Transfer(store=False, memory=memory, **fields)


def load_uops(count: int, **more: Any) -> Transfer:
    return load(Memory.UOP, count, dram_base=UOPS_ADDRESS // 4, **more)


def load_tiles() -> list[Instruction]:
    return [load(Memory.INP), load(Memory.WGT)]


def load_acc(count: int = 1, **more: Any) -> Transfer:
    return load(Memory.ACC, count, **more)


def store(count: int = 1, **more: Any) -> Transfer:
    return Transfer(
        store=True,
        memory=Memory.OUT,
        y_size=1,
        x_size=count,
        x_stride=count,
        dram_base=1024,
        **more,
    )


def gemm(uops: int = 1, **more: Any) -> Gemm:
    return Gemm(**{"uop_end": uops, "iter_out": 1, "iter_in": 1, **more})


def alu(operation: int, uops: int = 1, *, imm: int | None = None, **more: Any) -> Alu:
    fields: dict[str, Any] = {"uop_end": uops, "iter_out": 1, "iter_in": 1, **more}
    return Alu(alu_opcode=operation, use_imm=int(imm is not None), imm=imm or 0, **fields)


def in_turn(instructions: Sequence[Instruction]) -> list[Instruction]:
    """The same with tokens that let every instruction wait for the one before, and FINISH.

    Load and store are no neighbours: an empty compute instruction goes between them.
    """
    serial: list[Instruction] = []
    for instruction in (*instructions, Finish()):
        if serial:
            before, after = module_of(serial[-1]), module_of(instruction)
            if {before, after} == {"load", "store"}:
                serial.append(Transfer(store=False))
                _hand_over(serial, before)
        serial.append(instruction)
        if len(serial) > 1:
            _hand_over(serial, module_of(serial[-2]))
    return serial


def _hand_over(serial: list[Instruction], before: str) -> None:
    """A token from the last but one to the last instruction where their modules differ."""
    forward = ORDER.index(module_of(serial[-1])) - ORDER.index(before)
    if forward == 0:
        return
    push = {"push_next": 1} if forward > 0 else {"push_prev": 1}
    pop = {"pop_prev": 1} if forward > 0 else {"pop_next": 1}
    serial[-2] = _with_tokens(serial[-2], push)
    serial[-1] = _with_tokens(serial[-1], pop)


def _with_tokens(instruction: Instruction, more: dict[str, int]) -> Instruction:
    assert isinstance(instruction, Transfer | Gemm | Alu | Finish)
    tokens = {name: getattr(instruction.tokens, name) for name in Tokens.__slots__}
    return replace(instruction, tokens=Tokens(**{**tokens, **more}))


def words_of(instructions: Sequence[Instruction], vta: VtaConfig) -> npt.NDArray[np.uint64]:
    codes = InstructionSet(vta)
    return np.array([codes.encode(f) for f in instructions], np.uint64)


def memory(uops: Sequence[Uop], vta: VtaConfig, nbytes: int = 1 << 16) -> npt.NDArray[np.uint8]:
    """Zeros, with the micro-ops at UOPS_ADDRESS."""
    image = np.zeros(nbytes, np.uint8)
    words = np.array([encoded_uop(uop, vta) for uop in uops], np.uint32)
    image[UOPS_ADDRESS : UOPS_ADDRESS + words.nbytes] = words.view(np.uint8)
    return image
