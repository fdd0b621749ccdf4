"""The structures of `tilefarm_vta.h`, as ctypes has them."""

from __future__ import annotations

import ctypes

from tilefarm.machine import VTA_COUNTERS

from device_server.vta.library.native import (
    CHOICE_FIELDS,
    CONFIG_FIELDS,
    TIMING_FIELDS,
)


class RawConfig(ctypes.Structure):
    """What an accelerator is configured with: hardware, timing, choices."""

    _fields_ = [(name, ctypes.c_int32) for name in (*CONFIG_FIELDS, *TIMING_FIELDS, *CHOICE_FIELDS)]


class RawCounters(ctypes.Structure):
    """What a run is counted in."""

    _fields_ = [(name, ctypes.c_uint64) for name in VTA_COUNTERS]


class RawEvent(ctypes.Structure):
    """An instruction on the timeline."""

    _fields_ = [
        ("begin_cycle", ctypes.c_uint64),
        ("end_cycle", ctypes.c_uint64),
        ("module", ctypes.c_uint32),
        ("instruction", ctypes.c_uint32),
        ("name", ctypes.c_char * 48),
    ]


class RawFinding(ctypes.Structure):
    """What a strict run has to say of an instruction."""

    _fields_ = [
        ("severity", ctypes.c_uint32),
        ("instruction", ctypes.c_uint32),
        ("rule", ctypes.c_char * 16),
        ("text", ctypes.c_char * 232),
    ]


class RawRecorded(ctypes.Structure):
    """How large a kept synchronization is, and what it counted."""

    _fields_ = [
        ("instructions", ctypes.c_size_t),
        ("image_nbytes", ctypes.c_size_t),
        ("counters", RawCounters),
    ]
