"""The functions of VTA's runtime: read from their prototypes, exported by both libraries."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.built import needs_simulator
from tilefarm.vta_isa import FIRST_STAGE, MODULES
from tilefarm.vta_runtime import FUNCTIONS, OF_KERNELS, Function

from compile_worker.ir.stmt import Module
from device_server.vta.library.native import find_library, find_stand_in


def test_prototypes_are_taken_apart() -> None:
    assert FUNCTIONS["VTAUopLoopEnd"] == Function("void", "VTAUopLoopEnd", ())
    assert FUNCTIONS["VTAPushALUOp"] == Function(
        "int",
        "VTAPushALUOp",
        ("void** handle", "int (*record)(void*)", "void* closure", "int nbytes"),
    )
    assert FUNCTIONS["VTAPushALUOp"].names == ("handle", "record", "closure", "nbytes")
    assert FUNCTIONS["VTABufferCPUPtr"].result == "void*"
    assert len(FUNCTIONS) == 19
    assert len(OF_KERNELS) == 12


@needs_simulator
@pytest.mark.parametrize("find", [find_library, find_stand_in])
def test_our_libraries_have_all_functions(find: Callable[[], Path]) -> None:
    library = ctypes.CDLL(str(find()))
    assert [name for name in FUNCTIONS if not hasattr(library, name)] == []


def test_the_compiler_numbers_modules_as_tokens_do() -> None:
    stages = {name: FIRST_STAGE + number for number, name in enumerate(MODULES)}
    assert {module.name.lower(): module.value for module in Module} == stages
