"""Holes in a recorded image go; what the stream does, and when, stays."""

from __future__ import annotations

import numpy as np
import pytest
from kit.kernels.assembly import parse
from kit.kernels.programs import DENSE, OUT_AT, ROWS, SIM, dense_program
from tilefarm.errors import InfraError

from device_server.vta.library.library import VtaLibrary
from device_server.vta.programs.disassembly import assemble, disassemble
from device_server.vta.programs.instructions import InstructionSet
from device_server.vta.programs.squeeze import GRANULE_NBYTES, squeezed


@pytest.fixture
def library() -> VtaLibrary:
    try:
        return VtaLibrary()
    except InfraError as error:
        pytest.skip(str(error))


FAR = 5 * GRANULE_NBYTES


def test_a_stream_without_its_hole_does_the_same_in_the_same_time(
    library: VtaLibrary,
) -> None:
    """The output lies five granules away from the rest, a stream that stores nothing else there."""
    isa = InstructionSet(SIM.geometry)
    far = DENSE.replace(f"dram={OUT_AT // 16:#x}", f"dram={(FAR + 48) // 16:#x}")
    before = np.zeros(FAR + 4096, np.uint8)
    near = dense_program().image()
    before[: near.size] = near
    library.configure(SIM)
    wanted = library.run_stream(assemble(parse(far), isa), before)
    records, (small, after) = squeezed(parse(far), (before, wanted.dram), SIM.geometry)
    assert small.size == GRANULE_NBYTES + 4096
    again = library.run_stream(assemble(records, isa), small)
    np.testing.assert_array_equal(again.dram, after)
    assert again.counters == wanted.counters
    found = after[GRANULE_NBYTES + 48 :][: 16 * ROWS]
    expected = dense_program().expected_image()
    assert expected is not None
    np.testing.assert_array_equal(found, expected[OUT_AT:][: 16 * ROWS])


def test_what_has_no_hole_stays_as_it_is() -> None:
    program = dense_program()
    records = disassemble(program.instructions, InstructionSet(SIM.geometry))
    again, (image,) = squeezed(records, (program.image(),), SIM.geometry)
    assert again == records
    np.testing.assert_array_equal(image, program.image())
