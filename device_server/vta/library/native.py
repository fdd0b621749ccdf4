"""The built VTA library: where it lies, and the records of its C header in Python's words."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Final

from tilefarm.errors import InfraError
from tilefarm.machine import VTA_COUNTERS
from tilefarm.measurement import Counters, TimelineEvent
from tilefarm.target import Target, VtaConfig
from tilefarm.vta_isa import MODULES

import device_server

LIBRARY_NAME: Final = "libtilefarm_vta.so"
HOST_LIBRARY_NAME: Final = "libtilefarm_host.so"
STAND_IN_NAME: Final = "libtilefarm_board.so"
EXECUTABLE_NAME: Final = "vta-runner"
KNOWN_KERNEL_NAME: Final = "vta-known.so"
HOST_KNOWN_KERNEL_NAME: Final = "host-known.so"
BUILD_COMMAND: Final = (
    "cmake -S device_server/vta/runtime -B build/runtime-dev && cmake --build build/runtime-dev"
)

CONFIG_FIELDS: Final = (
    "log_batch",
    "log_block",
    "log_inp_width",
    "log_wgt_width",
    "log_acc_width",
    "log_uop_buff_size",
    "log_inp_buff_size",
    "log_wgt_buff_size",
    "log_acc_buff_size",
)
TIMING_FIELDS: Final = (
    "bus_nbytes",
    "log_burst_beats",
    "dram_delay_cycles",
    "queue_entries",
    "outstanding_bursts",
)
CHOICE_FIELDS: Final = ("functional_only", "strictness", "time_model", "features")


class Strictness(Enum):
    """Whose rules a program is held to: the functional simulator's, or also a hardware's."""

    FUNCTIONAL = "functional"
    CHISEL = "chisel"
    HLS = "hls"


class TimingModel(Enum):
    """Whose time is counted. CHISEL equals the RTL; HLS, the design for FPGAs, is an estimate."""

    CHISEL = "chisel"
    HLS = "hls"


class TimingBasis(Enum):
    """What the cycles of a configuration are worth."""

    RTL = "equal to the RTL's"
    EXTRAPOLATED = "extrapolated: the RTL was not run with this geometry, bus or memory"
    ESTIMATE = "an estimate"


_ALU_MUL: Final = 1
_ORIGINAL_UOP_CACHE: Final = 2
"""Bits of `tilefarm_vta_feature`."""

STRICTNESSES: Final = tuple(Strictness)
TIMING_MODELS: Final = tuple(TimingModel)
TIMING_BASES: Final = tuple(TimingBasis)
"""Enums in the order of their numbers in `tilefarm_vta.h`."""


def find_library() -> Path:
    """The newest built VTA library.

    Raises:
        InfraError: there is none; says where it was looked for and how to build it.
    """
    return _find(LIBRARY_NAME)


def find_library_for(target: Target) -> Path:
    """The newest built library for a target: the simulator, or what a processor alone needs.

    Raises:
        InfraError: as `find_library` does.
    """
    return find_library() if target.has_accelerator else _find(HOST_LIBRARY_NAME)


def find_executable() -> Path:
    """The newest built runner; raises as `find_library` does."""
    return _find(EXECUTABLE_NAME)


def find_stand_in() -> Path:
    """The newest built stand-in for a board: a VTA library without counters, whose time is real.

    Raises:
        InfraError: as `find_library` does.
    """
    return _find(STAND_IN_NAME)


def find_known_kernel(target: Target) -> Path:
    """The newest built known kernel for a target; raises as `find_library` does."""
    return _find(KNOWN_KERNEL_NAME if target.has_accelerator else HOST_KNOWN_KERNEL_NAME)


def hardware_words(
    target: Target,
    *,
    functional_only: bool = False,
    strictness: Strictness | None = None,
    model: TimingModel | None = None,
) -> tuple[int, ...]:
    """The integers of `tilefarm_vta_config`, in the order of its fields.

    Where nothing is said, time and rules are those of the design that the target's board is made
    from. The functional rules stand for the Chisel design, too: they differ in what no kernel does.
    The library of a machine that is no VTA takes none of this.
    """
    geometry = (getattr(target.vta or VtaConfig(), name) for name in CONFIG_FIELDS)
    timing = (getattr(target.timing, name) for name in TIMING_FIELDS)
    hls = target.board.design == "hls"
    rules = strictness or (Strictness.HLS if hls else Strictness.FUNCTIONAL)
    time = model or (TimingModel.HLS if hls else TimingModel.CHISEL)
    choices = STRICTNESSES.index(rules), TIMING_MODELS.index(time)
    features = _ALU_MUL * target.limits.alu_mul
    features += _ORIGINAL_UOP_CACHE * (target.board.runtime == "original")
    return (*geometry, *timing, int(functional_only), *choices, features)


def counters_from_words(words: Iterable[int]) -> Counters:
    """The integers of `tilefarm_vta_counters`, in the order of its fields, as a record."""
    return Counters(**dict(zip(VTA_COUNTERS, words, strict=True)))


def timeline_event(module: int, name: str, begin_cycle: int, end_cycle: int) -> TimelineEvent:
    """One event of the library's timeline as a record."""
    return TimelineEvent(
        module=MODULES[module], name=name, begin_cycle=begin_cycle, end_cycle=end_cycle
    )


def _find(name: str) -> Path:
    candidates = [path for folder in _folders() for path in folder.glob(name) if path.is_file()]
    if candidates:
        return max(candidates, key=lambda path: path.stat().st_mtime_ns)
    places = ", ".join(str(folder) for folder in _places())
    raise InfraError(f"{name} is not built; looked in {places}", BUILD_COMMAND)


def _places() -> list[Path]:
    """Where an installation or a build tree keeps the library; patterns with `*` included."""
    packages = [Path(entry) for entry in device_server.__path__]
    return [package / "lib" for package in packages] + [
        package.parent / "build" / "*" for package in packages
    ]


def _folders() -> list[Path]:
    """The places that exist. Builds with sanitizers do not count: Python cannot load them."""
    return [
        folder
        for place in _places()
        for folder in place.parent.glob(place.name)
        if folder.is_dir() and "sanitize" not in folder.name
    ]
