"""The table of VTA's instruction set holds together, for every geometry that is possible."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefarm.impossible import impossibilities
from tilefarm.target import Target, VtaConfig
from tilefarm.vta_isa import (
    FORMATS,
    HEAD,
    INSTRUCTION_BITS,
    UOP,
    UOP_BITS,
    WORD_BITS,
    AluOp,
    Format,
    Memory,
    Opcode,
    element_nbytes,
    index_bits,
    instruction_layout,
    layout,
)

IN_MNEMONICS = {"memory", "reset", "alu_opcode", "use_imm"}
"""Fields that text has in the instruction's name."""

FORM = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.opcodes[0].word)


def geometries() -> st.SearchStrategy[VtaConfig]:
    logs = {f.name: st.integers(0, 18) for f in fields(VtaConfig) if "buff" in f.name}
    built = st.builds(VtaConfig, log_batch=st.integers(0, 3), log_block=st.integers(0, 5), **logs)
    return built.filter(lambda vta: not impossibilities(Target(name="any", vta=vta)))


@given(vta=geometries())
def test_fields_of_every_possible_geometry_lie_in_their_words(vta: VtaConfig) -> None:
    bits = index_bits(vta)
    for form in FORMATS:
        places = instruction_layout(form, bits)
        assert [place.name for place in places] == [f.name for f in (*form.low, *form.high)]
        low = max(p.bit + p.width for p in places[: len(form.low)])
        assert low <= WORD_BITS
        assert all(place.bit >= WORD_BITS for place in places[len(form.low) :])
        taken = [bit for p in places for bit in range(p.bit, p.bit + p.width)]
        assert len(set(taken)) == len(taken)
        assert max(taken) < INSTRUCTION_BITS
    assert sum(place.width for place in layout(UOP, 0, bits)) <= UOP_BITS


@given(vta=geometries())
def test_elements_have_the_bytes_that_the_geometry_says(vta: VtaConfig) -> None:
    widths = (vta.uop_nbytes, vta.wgt_nbytes, vta.inp_nbytes, vta.acc_nbytes, vta.out_nbytes)
    assert element_nbytes(vta)[: len(widths)] == widths


@FORM
def test_every_format_begins_with_opcode_and_tokens(form: Format) -> None:
    assert form.low[: len(HEAD)] == HEAD


@FORM
def test_text_has_every_field_once(form: Format) -> None:
    written = [name for operand in form.operands for name in operand.fields]
    assert len(set(written)) == len(written)
    own = {field.name for field in (*form.low[len(HEAD) :], *form.high)}
    assert own - IN_MNEMONICS <= set(written) <= own


def test_every_opcode_has_one_format_and_every_number_fits_its_field() -> None:
    assert sorted(opcode for form in FORMATS for opcode in form.opcodes) == sorted(Opcode)
    widths = {field.name: field.width.bits for form in FORMATS for field in (*form.low, *form.high)}
    for kind, field in ((Opcode, "opcode"), (Memory, "memory"), (AluOp, "alu_opcode")):
        assert [each.value for each in kind] == list(range(len(kind)))
        assert len(kind) <= 1 << widths[field]
