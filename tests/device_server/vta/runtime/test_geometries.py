"""Any geometry and every vector path compute what numpy computes, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from tilefarm.target import Target, VtaConfig
from tilefarm.vta_isa import Memory, element_nbytes

from device_server.vta.library.library import TimingBasis, VtaLibrary
from device_server.vta.programs.instructions import (
    Instruction,
    Uop,
)

from .numpy_accelerator import NumpyAccelerator
from .streams import alu, gemm, in_turn, load, load_acc, load_uops, memory, store, words_of

IMAGE_NBYTES = 1 << 18
OPERANDS_ADDRESS = 1 << 16

GEOMETRIES = {
    "1x16": VtaConfig(),
    "1x32": VtaConfig(log_block=5, log_inp_buff_size=15, log_wgt_buff_size=18),
    "2x16": VtaConfig(log_batch=1),
    "4x8": VtaConfig(log_batch=2, log_block=3, log_wgt_buff_size=15),
    "1x8": VtaConfig(log_block=3, log_inp_buff_size=13, log_wgt_buff_size=15, log_acc_buff_size=14),
    "2x4": VtaConfig(
        log_batch=1,
        log_block=2,
        log_inp_buff_size=12,
        log_wgt_buff_size=12,
        log_acc_buff_size=14,
    ),
}


def program(rng: np.random.Generator, vta: VtaConfig) -> tuple[list[Instruction], list[Uop]]:
    """Loads with padding, products, every ALU operation, stores; all indices are small."""
    uops = [Uop(*(int(k) for k in rng.integers(0, 8, 3))) for _ in range(8)]
    sizes = element_nbytes(vta)

    def load_some(kind: int, **more: int) -> Instruction:
        first = OPERANDS_ADDRESS // sizes[kind] + int(rng.integers(0, 9))
        return load(kind, 5, dram_base=first, y_size=4, x_stride=7, **more)

    body: list[Instruction] = [
        load_uops(8),
        load_some(Memory.INP, y_pad_0=1, x_pad_0=2, x_pad_1=1),
        load_some(Memory.WGT, x_pad_1=1, y_pad_1=2),
        load_acc(30, dram_base=OPERANDS_ADDRESS // sizes[3]),
        load_some(Memory.ACC8, sram_base=9, x_pad_0=1),
    ]
    for operation in rng.permutation(5).tolist():
        loops = {"iter_out": 2, "iter_in": 3, "dst_out": 4, "dst_in": 2, "src_out": 1, "src_in": 5}
        body.append(gemm(8, wgt_out=3, wgt_in=2, reset=int(rng.random() < 0.2), **loops))
        imm = int(rng.integers(-30, 31)) if operation == 3 or rng.random() < 0.5 else None
        body.append(alu(operation, 8, imm=imm, **loops))
    out = IMAGE_NBYTES // 2 // sizes[Memory.OUT]
    body.append(replace(store(6, sram_base=1), dram_base=out, y_size=3, x_stride=9))
    return body, uops


def image_of(rng: np.random.Generator, uops: list[Uop], vta: VtaConfig) -> npt.NDArray[np.uint8]:
    image = memory(uops, vta, IMAGE_NBYTES)
    operands = image[OPERANDS_ADDRESS : IMAGE_NBYTES // 2]
    operands[:] = rng.integers(0, 256, operands.size)
    return image


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", GEOMETRIES)
def test_every_geometry_and_vector_path_is_bit_exact(
    library: VtaLibrary, name: str, seed: int
) -> None:
    vta = GEOMETRIES[name]
    rng = np.random.default_rng(seed)
    body, uops = program(rng, vta)
    image = image_of(rng, uops, vta)
    oracle = NumpyAccelerator(vta, image)
    with np.errstate(over="ignore"):
        oracle.run(body)
    assert not np.array_equal(oracle.image, image)
    library.configure(Target(name=name, vta=vta))
    words = words_of(in_turn(body), vta)
    for path in library.vector_paths():
        library.use_vector_path(path)
        result = library.run_stream(words, image)
        np.testing.assert_array_equal(result.dram, oracle.image)
        assert (result.basis is TimingBasis.RTL) == (name == "1x16")
        assert result.counters.cycles > 0
    library.use_vector_path(library.vector_paths()[0])
