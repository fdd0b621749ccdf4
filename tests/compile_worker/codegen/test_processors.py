"""References and stubs of processors: encodings by hand, and what they refuse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compile_worker.codegen.processors import (
    PROCESSORS,
    Distance,
    InPage,
    OutOfReach,
    PageDistance,
    Reference,
)

from .references import slot_of_stub

WRITTEN: dict[str, tuple[Reference, int, int, int, int]] = {
    "call .+8 on x86-64": (Distance(32), 0, 0x104, 0x100, 4),
    "bl .+8 on aarch64": (Distance(26, 4), 0x94000000, 0x108, 0x100, 0x94000002),
    "bl .-4 on aarch64": (Distance(26, 4), 0x94000000, 0xFC, 0x100, 0x97FFFFFF),
    "bl .+8 on armv7, its pc 8 bytes on": (Distance(24, 4), 0xEB000000, 0x100, 0x100, 0xEB000000),
    "bl .-4 on armv7": (Distance(24, 4), 0xEB000000, 0xF4, 0x100, 0xEBFFFFFD),
    "adrp x0, .+0x5000": (PageDistance(), 0x90000000, 0x5FFC, 0xFFC, 0xB0000020),
    "adrp x1, .-0x1000": (PageDistance(), 0x90000001, 0x1010, 0x2008, 0xF0FFFFE1),
    "add x0, x0, #0x123": (InPage(), 0x91000000, 0x45123, 0, 0x91048C00),
    "ldr q0, [x8, #0x30]": (InPage(16), 0x3DC00100, 0x7030, 0, 0x3DC00D00),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_encodings(name: str) -> None:
    reference, word, goal, place, wanted = WRITTEN[name]
    assert f"{reference.written(word, goal, place):08x}" == f"{wanted:08x}"


TOO_FAR: dict[str, tuple[Reference, int]] = {
    "a call on x86-64": (Distance(32), 1 << 31),
    "a call on aarch64": (Distance(26, 4), 1 << 27),
    "a call on armv7": (Distance(24, 4), 1 << 25),
    "a call of Thumb code": (Distance(24, 4), 0x101),
    "a page": (PageDistance(), 1 << 32),
    "a vector between others": (InPage(16), 0x7038),
}


@pytest.mark.parametrize("name", TOO_FAR)
def test_what_cannot_be_written_is_refused(name: str) -> None:
    reference, goal = TOO_FAR[name]
    with pytest.raises(OutOfReach):
        reference.written(0, goal, 0)


@given(st.integers(-(1 << 23), (1 << 23) - 1), st.integers(0, 1 << 20))
def test_addends_are_what_is_written(units: int, place: int) -> None:
    reference = Distance(24, 4)
    assert reference.addend(reference.written(0xEB000000, place + 4 * units, place)) == 4 * units


@pytest.mark.parametrize("number", PROCESSORS)
@given(at=st.integers(0, 1 << 20), distance=st.integers(2, 1 << 24))
def test_stubs_jump_to_their_slots(number: int, at: int, distance: int) -> None:
    processor = PROCESSORS[number]
    word = processor.elf.word_nbytes
    at, slot = at * 4, (at * 4 // word + distance) * word
    stub = processor.stub(at, slot)
    assert len(stub) == processor.stub_nbytes
    assert slot_of_stub(number, stub, at) == slot


def test_a_slot_that_armv7s_stub_cannot_reach() -> None:
    with pytest.raises(OutOfReach):
        PROCESSORS[40].stub(0, (1 << 28) + 8)
