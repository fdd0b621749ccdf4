"""Functions of the VTA library that only tests call."""

from __future__ import annotations

import ctypes

from tilefarm.target import VtaConfig
from tilefarm.vta_isa import UOP, index_bits, layout

from device_server.vta.library.library import VtaLibrary
from device_server.vta.programs.instructions import Uop

_TEXT_NBYTES = 1024


def limit_uops(library: VtaLibrary, limit: int) -> None:
    """Runs with more executed micro-ops than that are refused; 2^31 at first."""
    ctypes.CDLL(str(library.path)).tilefarm_vta_limit_uops(ctypes.c_uint64(limit))


def disassembled(library: VtaLibrary, low: int, high: int) -> tuple[tuple[int, int], str] | None:
    """An instruction as the library encodes what it decodes, and as text; None: unknown opcode."""
    again, text = (ctypes.c_uint64 * 2)(), ctypes.create_string_buffer(_TEXT_NBYTES)
    words, count = (ctypes.c_uint64 * 2)(low, high), ctypes.c_size_t(_TEXT_NBYTES)
    function = ctypes.CDLL(str(library.path)).tilefarm_vta_disassemble
    if function(words, again, text, count):
        return None
    return (again[0], again[1]), text.value.decode()


def decoded_uop(library: VtaLibrary, word: int) -> tuple[int, tuple[int, ...]]:
    """A micro-op as the library encodes what it decodes; its dst, src and wgt."""
    again, indices = ctypes.c_uint32(), (ctypes.c_uint32 * 3)()
    function = ctypes.CDLL(str(library.path)).tilefarm_vta_decode_uop
    assert not function(ctypes.c_uint32(word), ctypes.byref(again), indices)
    return again.value, tuple(indices)


def encoded_uop(uop: Uop, vta: VtaConfig) -> int:
    """The word of a micro-op whose indices fit."""
    places = layout(UOP, 0, index_bits(vta))
    return sum(getattr(uop, place.name) << place.bit for place in places)
