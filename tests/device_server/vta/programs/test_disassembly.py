"""Instructions to bits, to text and back, for any geometry."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.golden import Golden
from kit.kernels.assembly import parse, parse_line
from kit.kernels.programs import DENSE, dense_program, stream
from kit.shared import shared_folder
from tilefarm.errors import DataError
from tilefarm.target import Target, VtaConfig, impossibilities

from device_server.vta.programs.disassembly import (
    assemble,
    disassemble,
    line,
    uops_of,
)
from device_server.vta.programs.instructions import (
    Alu,
    Finish,
    Gemm,
    Instruction,
    InstructionSet,
    Tokens,
    Transfer,
    Unknown,
)
from device_server.vta.programs.program import read_program
from device_server.vta.programs.stream_statistics import statistics

GEOMETRIES = {
    "default": VtaConfig(),
    "block 32": VtaConfig(log_block=5, log_wgt_buff_size=18, log_inp_buff_size=16),
    "batch 2": VtaConfig(log_batch=1),
    "4x8": VtaConfig(log_batch=2, log_block=3, log_wgt_buff_size=15),
    "tiny": VtaConfig(
        log_uop_buff_size=4, log_inp_buff_size=6, log_wgt_buff_size=8, log_acc_buff_size=7
    ),
}


def tokens() -> st.SearchStrategy[Tokens]:
    return st.builds(Tokens, **{f.name: st.integers(0, 1) for f in fields(Tokens)})


def bits(width: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << width) - 1)


def log2(depth: int) -> int:
    return depth.bit_length() - 1


@st.composite
def instructions(draw: st.DrawFn, vta: VtaConfig) -> Instruction:
    """Any record that the geometry can encode."""
    uop, acc = bits(log2(vta.uop_depth)), bits(log2(vta.acc_depth))
    inp, wgt = bits(log2(vta.inp_depth)), bits(log2(vta.wgt_depth))
    loops: dict[str, Any] = {
        "tokens": tokens(),
        "reset": bits(1),
        "uop_begin": uop,
        "uop_end": bits(log2(vta.uop_depth) + 1),
        "iter_out": bits(14),
        "iter_in": bits(14),
        "dst_out": acc,
        "dst_in": acc,
    }
    transfer = st.builds(
        Transfer,
        store=st.booleans(),
        tokens=tokens(),
        memory=bits(3),
        sram_base=bits(16),
        dram_base=bits(32),
        y_size=bits(16),
        x_size=st.one_of(st.just(0), bits(16)),
        x_stride=bits(16),
        y_pad_0=bits(4),
        y_pad_1=bits(4),
        x_pad_0=bits(4),
        x_pad_1=bits(4),
    )
    gemm = st.builds(Gemm, **loops, src_out=inp, src_in=inp, wgt_out=wgt, wgt_in=wgt)
    alu = st.builds(
        Alu,
        **loops,
        src_out=acc,
        src_in=acc,
        alu_opcode=bits(3),
        use_imm=bits(1),
        imm=st.integers(-(1 << 15), (1 << 15) - 1),
    )
    unknown = st.builds(Unknown, bits(64).map(lambda low: low & ~7 | 5), bits(64))
    return draw(st.one_of(transfer, gemm, alu, unknown, st.builds(Finish, tokens=tokens())))


@pytest.mark.parametrize("vta", GEOMETRIES.values(), ids=GEOMETRIES.keys())
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_records_survive_bits_and_text(vta: VtaConfig, data: st.DataObject) -> None:
    assert not impossibilities(Target(name="any", vta=vta))
    isa = InstructionSet(vta)
    record = data.draw(instructions(vta))
    assert isa.decode(*isa.encode(record)) == record
    assert parse_line(line(3, record)) == record


@pytest.mark.parametrize("vta", GEOMETRIES.values(), ids=GEOMETRIES.keys())
@settings(max_examples=examples(40), deadline=None)
@given(low=bits(64), high=bits(64))
def test_any_bits_can_be_shown(vta: VtaConfig, low: int, high: int) -> None:
    isa = InstructionSet(vta)
    record = isa.decode(low, high)
    meant = isa.encode(record)
    assert isa.decode(*meant) == record
    assert meant[0] & ~low == 0
    assert meant[1] & ~high == 0
    assert parse_line(line(0, record)) == record


def test_bits_of_the_default_geometry_lie_where_the_hardware_has_them() -> None:
    isa = InstructionSet(VtaConfig())
    gemm = Gemm(tokens=Tokens(pop_next=1), uop_begin=1, uop_end=1, iter_out=1, iter_in=1, wgt_in=1)
    assert isa.encode(gemm) == (2 | 1 << 4 | 1 << 8 | 1 << 21 | 1 << 35 | 1 << 49, 1 << 54)
    alu = Alu(alu_opcode=3, use_imm=1, imm=-1)
    assert isa.encode(alu) == (4, 3 << 44 | 1 << 47 | 0xFFFF << 48)
    store = Transfer(
        store=True, memory=4, sram_base=1, dram_base=1, y_size=1, x_size=1, x_stride=1, x_pad_1=1
    )
    high = 1 | 1 << 16 | 1 << 32 | 1 << 60
    assert isa.encode(store) == (1 | 4 << 7 | 1 << 10 | 1 << 26, high)


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (Gemm(uop_begin=8192), "instruction 1: uop_begin = 8192 does not fit its 13 bits"),
        (Alu(imm=40000), "instruction 1: imm = 40000 does not fit its 16 bits"),
        (Transfer(store=False, x_size=-1), "instruction 1: x_size = -1 does not fit"),
    ],
)
def test_values_that_do_not_fit_are_named(record: Instruction, why: str) -> None:
    with pytest.raises(DataError) as error:
        assemble([Finish(), record], InstructionSet(VtaConfig()))
    assert why in error.value.what


def test_a_small_program_as_text(golden: Golden) -> None:
    isa = InstructionSet(VtaConfig())
    records = (*disassemble(stream(DENSE), isa), Unknown(6, 1), Alu(reset=1, imm=-2, alu_opcode=6))
    golden("\n".join(line(number, record) for number, record in enumerate(records)))


def test_micro_ops_are_followed_through_the_buffer() -> None:
    text = """
      0 compute load.uop sram=2 dram=0x1 y=2 x=2 stride=3 pad=1,0,1,0
      1 compute gemm uops=2..11 loops=1x1 dst=0,0 src=0,0 wgt=0,0
      2 compute load.uop sram=3 dram=0xffffff y=1 x=2 stride=2
      3 compute alu.add uops=3..5 loops=1x1 dst=0,0 src=0,0
    """
    image = np.arange(16, dtype=np.uint32).view(np.uint8)
    found = dict(uops_of(parse(text), image, 16))
    assert found == {1: [0, 0, 0, 0, 1, 2, 0, 4, 5], 3: [0, 0]}


def test_what_a_stream_does_is_counted() -> None:
    program = dense_program()
    records = disassemble(program.instructions, InstructionSet(VtaConfig()))
    counted = statistics([*records, Unknown(5, 0)], VtaConfig())
    assert (counted.load, counted.store, counted.gemm, counted.alu) == (3, 1, 2, 1)
    assert (counted.nop, counted.finish, counted.unknown, counted.instructions) == (1, 1, 1, 10)
    assert (counted.gemm_uops, counted.reset_uops, counted.alu_uops) == (4, 4, 4)
    assert counted.load_nbytes == {"uop": 4, "inp": 64, "wgt": 256}
    assert counted.store_nbytes == 64


def _vectors() -> list[Path]:
    shared = shared_folder()
    return sorted((shared / "rtl-vectors").glob("*.npz")) if shared else []


@pytest.mark.skipif(not _vectors(), reason="no folder shared/rtl-vectors next to the repository")
def test_every_golden_vector_survives_text_and_is_counted_right() -> None:
    for path in _vectors():
        program = read_program(path)
        isa = InstructionSet(program.target.geometry)
        records = disassemble(program.instructions, isa)
        text = "\n".join(line(number, record) for number, record in enumerate(records))
        np.testing.assert_array_equal(assemble(parse(text), isa), program.instructions)
        counted = statistics(records, program.target.geometry)
        found = {
            "n_load": counted.load,
            "n_gemm": counted.gemm,
            "n_alu": counted.alu,
            "n_store": counted.store,
            "n_nop": counted.nop,
            "gemm_uops": counted.gemm_uops,
            "reset_uops": counted.reset_uops,
            "alu_uops": counted.alu_uops,
            "load_bytes": sum(counted.load_nbytes.values()),
            "store_bytes": counted.store_nbytes,
        }
        assert found == {name: program.meta[name] for name in found}, path.name
        assert program.accumulator_writes == (
            counted.gemm_uops + counted.reset_uops + counted.alu_uops
        )
