"""What each hardware lacks or does differently: a program that shows it, and one that just not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tilefarm.target import TARGETS
from tilefarm.vta_isa import Memory

from device_server.vta.library.library import VtaError, VtaLibrary
from device_server.vta.library.native import Strictness
from device_server.vta.programs.instructions import Instruction, Tokens, Uop

from .streams import (
    ADD,
    MAX,
    MUL,
    SHR,
    alu,
    gemm,
    in_turn,
    load,
    load_acc,
    load_tiles,
    load_uops,
    memory,
    store,
    words_of,
)

VTA = TARGETS["sim"].geometry
FUNCTIONAL, CHISEL, HLS = Strictness
ONE = (Uop(0, 0, 0),)
PAIR = (Uop(0, 0, 0), Uop(1, 1, 0))
APART = (Uop(0, 0, 0), Uop(1, 1, 0), Uop(2, 2, 0))


Kinds = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Instructions after the loading of micro-ops; what each strictness says of them."""

    name: str
    body: Sequence[Instruction]
    uops: Sequence[Uop] = ONE
    acc: Sequence[int] = ()
    functional: Kinds = ()
    chisel: Kinds = ()
    hls: Kinds = ()


def error(rule: str) -> Kinds:
    return (("error", rule),)


def warning(rule: str) -> Kinds:
    return (("warning", rule),)


COMPUTED = [*load_tiles(), gemm(), store()]
CASES = (
    Case(name="a product is stored", body=COMPUTED),
    Case(
        name="MUL",
        body=[alu(MUL, imm=3)],
        functional=error("mul"),
        chisel=error("mul"),
        hls=error("mul"),
    ),
    Case(name="ADD instead of MUL", body=[alu(ADD, imm=3)]),
    Case(
        name="LOAD ACC8", body=[load(Memory.ACC8)], chisel=error("acc-8bit"), hls=error("acc-8bit")
    ),
    Case(name="LOAD ACC", body=[load_acc()]),
    Case(
        name="a loaded accumulator is stored",
        body=[load_acc(), store()],
        chisel=error("stale-out"),
        hls=error("stale-out"),
    ),
    Case(name="a loaded accumulator passes the ALU", body=[load_acc(), alu(SHR, imm=0), store()]),
    Case(
        name="a reset accumulator is stored",
        body=[*load_tiles(), gemm(), gemm(reset=1), store()],
        chisel=error("stale-out"),
        hls=error("stale-out"),
    ),
    Case(name="a reset one is computed", body=[*load_tiles(), gemm(reset=1), gemm(), store()]),
    Case(
        name="an accumulator that nobody wrote",
        body=[alu(ADD, imm=0), store(2)],
        chisel=error("stale-out"),
        hls=error("stale-out"),
    ),
    Case(name="shift by 15", body=[alu(SHR, imm=15)]),
    Case(name="shift by 16", body=[alu(SHR, imm=16)], hls=error("shift-range")),
    Case(name="shift by 31", body=[alu(SHR, imm=31)], hls=error("shift-range")),
    Case(
        name="shift by 32",
        body=[alu(SHR, imm=32)],
        chisel=error("shift-range"),
        hls=error("shift-range"),
    ),
    Case(name="shift left by 16", body=[alu(SHR, imm=-16)]),
    Case(
        name="shift left by 32",
        body=[alu(SHR, imm=-32)],
        chisel=error("shift-range"),
        hls=error("shift-range"),
    ),
    Case(
        name="shift by a register of 15",
        body=[load_acc(2), alu(SHR)],
        uops=[Uop(0, 1, 0)],
        acc=[5, 15],
    ),
    Case(
        name="shift by a register of -1",
        body=[load_acc(2), alu(SHR)],
        uops=[Uop(0, 1, 0)],
        acc=[5, -1],
        chisel=error("shift-range"),
    ),
    Case(
        name="shift by a register of 33",
        body=[load_acc(2), alu(SHR)],
        uops=[Uop(0, 1, 0)],
        acc=[5, 33],
        chisel=error("shift-range"),
        hls=error("shift-range"),
    ),
    Case(
        name="shift by a register with the immediate's sign set",
        body=[load_acc(2), replace(alu(SHR), imm=-1)],
        uops=[Uop(0, 1, 0)],
        acc=[5, 3],
        chisel=error("shift-range"),
    ),
    Case(name="padded weights", body=[load(Memory.WGT, x_pad_0=1)], hls=error("pads")),
    Case(name="plain weights", body=[load(Memory.WGT)]),
    Case(name="padded micro-ops", body=[load_uops(1, y_pad_1=1)], hls=error("pads")),
    Case(name="two rows of micro-ops", body=[load_uops(1, y_size=2)], hls=error("pads")),
    Case(
        name="the micro-op at 2048 is loaded",
        body=[load_uops(1, sram_base=2048)],
        chisel=error("uop-depth"),
    ),
    Case(name="the micro-op at 2047 is loaded", body=[load_uops(1, sram_base=2047)]),
    Case(
        name="the micro-op at 2048 is executed",
        body=[alu(ADD, uop_begin=2048, uop_end=2049, imm=0)],
        chisel=error("uop-depth"),
    ),
    Case(
        name="the micro-op at 2047 is executed",
        body=[alu(ADD, uop_begin=2047, uop_end=2048, imm=0)],
    ),
    Case(
        name="two products into one accumulator",
        body=[*load_tiles(), gemm(iter_in=2)],
        hls=error("gemm-raw"),
    ),
    Case(
        name="a product between two into one accumulator",
        body=[*load_tiles(), gemm(2, iter_in=2)],
        uops=[Uop(0, 0, 0), Uop(1, 0, 0)],
        hls=error("gemm-raw"),
    ),
    Case(
        name="two products between two into one accumulator",
        body=[*load_tiles(), gemm(3, iter_in=2)],
        uops=[Uop(0, 0, 0), Uop(1, 0, 0), Uop(2, 0, 0)],
    ),
    Case(name="two resets of one accumulator", body=[gemm(reset=1, iter_in=2)]),
    Case(
        name="two operations with immediates on one accumulator",
        body=[alu(ADD, iter_in=2, imm=1)],
        chisel=error("alu-raw"),
        hls=error("alu-raw"),
    ),
    Case(
        name="one operation between two on one accumulator",
        body=[alu(ADD, 2, iter_in=2, imm=1)],
        uops=PAIR,
        hls=error("alu-raw"),
    ),
    Case(
        name="two operations between two on one accumulator",
        body=[alu(ADD, 3, iter_in=2, imm=1)],
        uops=APART,
    ),
    Case(
        name="two sums of registers into one accumulator",
        body=[alu(ADD, 2)],
        uops=[Uop(0, 5, 0), Uop(0, 6, 0)],
        hls=error("alu-raw"),
    ),
    Case(
        name="a register is read that was just written",
        body=[alu(MAX, 2)],
        uops=[Uop(0, 5, 0), Uop(1, 0, 0)],
        chisel=error("alu-raw"),
        hls=warning("alu-raw"),
    ),
    Case(
        name="a register is read two micro-ops after it was written",
        body=[alu(MAX, 3)],
        uops=[Uop(0, 5, 0), Uop(1, 5, 0), Uop(2, 0, 0)],
        hls=warning("alu-raw"),
    ),
    Case(
        name="src is not dst beside an immediate",
        body=[alu(MAX, imm=0)],
        uops=[Uop(0, 7, 0)],
        chisel=error("imm-src"),
        hls=warning("imm-src"),
    ),
    Case(
        name="src leaves dst on the way",
        body=[alu(MAX, imm=0, iter_in=2, dst_in=1)],
        chisel=error("imm-src") + error("alu-raw"),
        hls=warning("imm-src") + warning("alu-raw"),
    ),
    Case(name="src goes with dst", body=[alu(MAX, imm=0, iter_in=2, dst_in=1, src_in=1)]),
    Case(name="no rows", body=[load_acc(y_size=0)], chisel=error("y-size-0")),
    Case(name="no columns", body=[load_acc(0)]),
)


def kinds_of(library: VtaLibrary, case: Case, strictness: Strictness) -> Kinds:
    library.configure(TARGETS["sim"], strictness=strictness)
    image = memory(case.uops, VTA)
    for index, value in enumerate(case.acc):
        image[64 * index : 64 * (index + 1)] = np.full(16, value, np.int32).view(np.uint8)
    stream = in_turn([load_uops(len(case.uops)), *case.body])
    findings = library.run_stream(words_of(stream, VTA), image).findings
    return tuple((finding.severity, finding.rule) for finding in findings)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_strictness_says_what_its_hardware_would_do(library: VtaLibrary, case: Case) -> None:
    assert kinds_of(library, case, FUNCTIONAL) == case.functional
    assert kinds_of(library, case, CHISEL) == case.chisel
    assert kinds_of(library, case, HLS) == case.hls


@pytest.mark.parametrize(
    ("strictness", "severity"), [(FUNCTIONAL, "warning"), (CHISEL, "error"), (HLS, "error")]
)
def test_tokens_that_nobody_takes_name_their_giver(
    library: VtaLibrary, strictness: Strictness, severity: str
) -> None:
    library.configure(TARGETS["sim"], strictness=strictness)
    giver = replace(load(Memory.WGT), tokens=Tokens(push_next=1))
    words = words_of(in_turn([load_uops(1), giver, giver, load_acc()]), VTA)
    (finding,) = library.run_stream(words, memory(ONE, VTA)).findings
    assert (finding.severity, finding.rule, finding.instruction) == (severity, "tokens-left", 2)
    assert "1 token load->compute is left over" in finding.text


def test_a_rule_is_told_once_an_instruction_and_a_few_times_a_run(library: VtaLibrary) -> None:
    library.configure(TARGETS["sim"], strictness=HLS)
    stream = in_turn([load_uops(1), *load_tiles(), *[gemm(iter_in=5)] * 40])
    findings = library.run_stream(words_of(stream, VTA), memory(ONE, VTA)).findings
    assert [finding.instruction for finding in findings] == list(range(3, 19))


def test_results_are_those_of_the_functional_rules_whatever_is_found(library: VtaLibrary) -> None:
    stream = words_of(in_turn([load_uops(1), load_acc(), alu(MUL, imm=7), store()]), VTA)
    image = memory(ONE, VTA)
    image[:64] = np.arange(16, dtype=np.int32).view(np.uint8)
    for strictness in Strictness:
        library.configure(TARGETS["sim"], strictness=strictness)
        result = library.run_stream(stream, image)
        np.testing.assert_array_equal(result.dram[16 * 1024 : 16 * 1025], np.arange(16) * 7)
        assert result.counters.cycles > 0


@pytest.mark.parametrize("strictness", Strictness)
def test_an_alu_that_is_said_to_have_mul_has_it(
    library: VtaLibrary, strictness: Strictness
) -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(-(1 << 31), 1 << 31, (2, 16)).astype(np.int32)
    library.configure(TARGETS["sim-mul"], strictness=strictness)
    for by, imm in ((values[1], None), (np.int32(-(1 << 15)), -(1 << 15))):
        operation = replace(alu(MUL), use_imm=int(imm is not None), imm=imm or 0)
        uop = Uop(0, 1 if imm is None else 0, 0)
        image = memory((uop,), VTA)
        image[:128] = values.reshape(-1).view(np.uint8)
        stream = in_turn([load_uops(1), load_acc(2), operation, store()])
        result = library.run_stream(words_of(stream, VTA), image)
        assert result.findings == ()
        expected = (values[0] * by).astype(np.int8)
        np.testing.assert_array_equal(
            result.dram[16 * 1024 : 16 * 1025].view(np.int8), expected, err_msg="it wraps"
        )


def test_mul_takes_the_time_of_other_operations(library: VtaLibrary) -> None:
    library.configure(TARGETS["sim-mul"])
    image = memory(APART, VTA)
    cycles = {
        tuple(
            library.run_stream(words_of(in_turn([load_uops(3), each]), VTA), image).counters.cycles
            for each in (alu(operation, 3), alu(operation, 3, imm=3))
        )
        for operation in (ADD, MUL)
    }
    assert len(cycles) == 1


def test_what_hangs_everywhere_is_refused_by_every_strictness(library: VtaLibrary) -> None:
    for strictness in Strictness:
        library.configure(TARGETS["sim"], strictness=strictness)
        with pytest.raises(VtaError, match="zero trip count"):
            library.run_stream(words_of(in_turn([gemm(iter_in=0)]), VTA), memory(ONE, VTA))
