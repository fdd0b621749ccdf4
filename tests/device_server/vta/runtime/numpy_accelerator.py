"""The accelerator in numpy, one instruction after the other, for any geometry: slow and plain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from tilefarm.target import VtaConfig
from tilefarm.vta_isa import Memory

from device_server.vta.programs.instructions import (
    Alu,
    Gemm,
    Instruction,
    InstructionSet,
    Transfer,
    Uop,
)


class NumpyAccelerator:
    """On-chip memories and a DRAM image (uint8), which `run` changes."""

    def __init__(self, vta: VtaConfig, image: npt.NDArray[np.uint8]) -> None:
        rows, block = vta.batch, vta.block
        self.image = image.copy()
        self._codes = InstructionSet(vta)
        self._uops = [Uop(0, 0, 0)] * vta.uop_depth
        self._inp = np.zeros((vta.inp_depth, rows, block), np.int8)
        self._wgt = np.zeros((vta.wgt_depth, block, block), np.int8)
        self._acc = np.zeros((vta.acc_depth, rows, block), np.int32)

    def run(self, instructions: Sequence[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Transfer() if instruction.is_nop:
                    pass
                case Transfer(store=True):
                    self._store(instruction)
                case Transfer():
                    self._load(instruction)
                case Gemm():
                    self._gemm(instruction)
                case Alu():
                    self._alu(instruction)

    def _rows(self, f: Transfer, nbytes: int) -> Iterator[tuple[int, int]]:
        """Begin and end of every row in DRAM."""
        for y in range(f.y_size):
            begin = (f.dram_base + y * f.x_stride) * nbytes
            yield begin, begin + f.x_size * nbytes

    def _load(self, f: Transfer) -> None:
        if f.memory == 0:
            for begin, end in self._rows(f, 4):
                words = self.image[begin:end].view(np.uint32).tolist()
                decoded = [self._codes.decode_uop(word) for word in words]
                self._uops[f.sram_base : f.sram_base + f.x_size] = decoded
            return
        memory = {Memory.INP: self._inp, Memory.WGT: self._wgt}.get(Memory(f.memory), self._acc)
        dtype = np.dtype(np.int32 if f.memory == Memory.ACC else np.int8)
        tile = memory.shape[1:]
        nbytes = dtype.itemsize * tile[0] * tile[1]
        rows = [
            self.image[begin:end].view(dtype).reshape(f.x_size, *tile)
            for begin, end in self._rows(f, nbytes)
        ]
        assert f.memory in (Memory.INP, Memory.WGT, Memory.ACC, Memory.ACC8)
        pads = ((f.y_pad_0, f.y_pad_1), (f.x_pad_0, f.x_pad_1), (0, 0), (0, 0))
        padded = np.pad(np.stack(rows), pads)
        count = padded.shape[0] * padded.shape[1]
        memory[f.sram_base : f.sram_base + count] = padded.reshape(count, *tile)

    def _store(self, f: Transfer) -> None:
        tile = self._acc[0].size
        for y, (begin, end) in enumerate(self._rows(f, tile)):
            first = f.sram_base + y * f.x_size
            low = self._acc[first : first + f.x_size].astype(np.int8)
            self.image[begin:end] = low.reshape(-1).view(np.uint8)

    def _indices(self, f: Gemm | Alu) -> Iterator[tuple[int, int, int]]:
        wgt_out, wgt_in = (f.wgt_out, f.wgt_in) if isinstance(f, Gemm) else (0, 0)
        for o in range(f.iter_out):
            for i in range(f.iter_in):
                for uop in self._uops[f.uop_begin : f.uop_end]:
                    yield (
                        uop.dst + o * f.dst_out + i * f.dst_in,
                        uop.src + o * f.src_out + i * f.src_in,
                        uop.wgt + o * wgt_out + i * wgt_in,
                    )

    def _gemm(self, f: Gemm) -> None:
        for dst, src, wgt in self._indices(f):
            if f.reset:
                self._acc[dst] = 0
            else:
                self._acc[dst] += self._inp[src].astype(np.int32) @ self._wgt[wgt].T.astype(
                    np.int32
                )

    def _alu(self, f: Alu) -> None:
        for dst, src, _ in self._indices(f):
            a = self._acc[dst].astype(np.int64)
            b = np.full_like(a, f.imm) if f.use_imm else self._acc[src].astype(np.int64)
            shifted = np.where(b >= 0, a >> np.clip(b, 0, 31), a << np.clip(-b, 0, 32))
            by = (np.minimum(a, b), np.maximum(a, b), a + b, shifted, a * b)[f.alu_opcode]
            self._acc[dst] = by.astype(np.int32)
