"""C++ and Python agree on instructions: bits, fields and text, made of or held to one table."""

from __future__ import annotations

import importlib.util
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from kit.shared import shared_folder
from tilefarm.target import Target, VtaConfig
from tilefarm.vta_isa import FORMATS, HEAD, UOP, Opcode

import device_server
from device_server.vta.library.library import VtaLibrary
from device_server.vta.programs.disassembly import line
from device_server.vta.programs.instructions import (
    Alu,
    Gemm,
    InstructionSet,
    Transfer,
    Unknown,
    Uop,
)
from device_server.vta.programs.program import read_program

from .vta_functions import decoded_uop, disassembled, encoded_uop

RUNTIME = Path(device_server.__file__).parent / "vta" / "runtime"
GEOMETRIES = {
    "default": VtaConfig(),
    "block 32": VtaConfig(log_block=5, log_inp_buff_size=16),
    "4x8": VtaConfig(log_batch=2, log_block=3, log_wgt_buff_size=15),
    "one of each": VtaConfig(
        log_uop_buff_size=2, log_inp_buff_size=4, log_wgt_buff_size=8, log_acc_buff_size=6
    ),
    "deep": VtaConfig(
        log_block=3, log_inp_buff_size=13, log_wgt_buff_size=16, log_acc_buff_size=16
    ),
}
CASES = 300


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", RUNTIME / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_header_and_the_page_are_fresh(generator: ModuleType) -> None:
    assert generator.stale() == [], "run device_server/vta/runtime/generate.py"


def test_a_file_that_somebody_changed_is_found(
    generator: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    texts = {tmp_path / path.name: text for path, text in generator.files().items()}
    monkeypatch.setattr(generator, "files", lambda: texts)
    assert len(generator.stale()) == len(texts)
    assert generator.main(["--check"]) == 1
    for path, text in texts.items():
        path.write_text(text)
    assert generator.main(["--check"]) == 0
    next(iter(texts)).write_text("changed")
    assert generator.main(["--check"]) == 1


@pytest.mark.parametrize(
    ("record", "opcode"), [(Transfer, Opcode.LOAD), (Gemm, Opcode.GEMM), (Alu, Opcode.ALU)]
)
def test_records_have_the_fields_of_the_table(record: type, opcode: Opcode) -> None:
    (form,) = [form for form in FORMATS if opcode in form.opcodes]
    own = [field.name for field in fields(record) if field.name not in ("store", "tokens")]
    assert own == [field.name for field in (*form.low[len(HEAD) :], *form.high)]
    assert list(Uop._fields) == [field.name for field in UOP]


@pytest.mark.parametrize("name", GEOMETRIES)
def test_both_languages_read_and_write_the_same_bits(library: VtaLibrary, name: str) -> None:
    vta = GEOMETRIES[name]
    library.configure(Target(name=name, vta=vta))
    isa = InstructionSet(vta)
    rng = np.random.default_rng(7)
    for low, high in rng.integers(0, 1 << 64, (CASES, 2), dtype=np.uint64).tolist():
        record = isa.decode(low, high)
        if isinstance(record, Unknown):
            assert disassembled(library, low, high) is None
            continue
        again, text = disassembled(library, low, high) or ((0, 0), "unknown")
        assert again == isa.encode(record)
        assert isa.decode(*again) == record
        assert text == line(0, record).removeprefix("     0 ")
    for word in rng.integers(0, 1 << 32, CASES, dtype=np.uint64).tolist():
        uop = isa.decode_uop(word)
        assert decoded_uop(library, word) == (encoded_uop(uop, vta), tuple(uop))
        assert isa.decode_uop(encoded_uop(uop, vta)) == uop


@pytest.mark.parametrize("name", GEOMETRIES)
def test_small_values_and_nothing_at_all_look_the_same(library: VtaLibrary, name: str) -> None:
    """Zeros decide what text leaves out; random bits have none."""
    vta = GEOMETRIES[name]
    library.configure(Target(name=name, vta=vta))
    isa = InstructionSet(vta)
    rng = np.random.default_rng(8)
    for opcode in Opcode:
        for _ in range(CASES // 5):
            mask = [int(rng.integers(0, 1 << 64, dtype=np.uint64)) for _ in range(4)]
            low = mask[0] & mask[1] & mask[2] & ~0b111 | opcode
            high = mask[1] & mask[2] & mask[3]
            record = isa.decode(low, high)
            again, text = disassembled(library, low, high) or ((0, 0), "unknown")
            assert again == isa.encode(record)
            assert text == line(0, record).removeprefix("     0 ")


def _vectors() -> list[Path]:
    shared = shared_folder()
    return sorted((shared / "rtl-vectors").glob("*.npz")) if shared else []


@pytest.mark.skipif(not _vectors(), reason="no folder shared/rtl-vectors next to the repository")
def test_what_the_rtl_was_run_with_reads_the_same_in_both_languages(library: VtaLibrary) -> None:
    for path in _vectors()[::8]:
        program = read_program(path)
        library.configure(program.target)
        isa = InstructionSet(program.target.geometry)
        for low, high in np.unique(program.instructions, axis=0).tolist():
            again, text = disassembled(library, low, high) or ((0, 0), "unknown")
            assert again == (low, high) == isa.encode(isa.decode(low, high)), path.name
            assert text == line(0, isa.decode(low, high)).removeprefix("     0 ")
