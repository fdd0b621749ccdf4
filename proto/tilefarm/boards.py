"""Boards that VTA was made for: geometry, bus, clock and host of each, and what runs on it.

Geometry is that of the original's sample files, the same for all; bus width, clock and design come
from `hw/config/pkg_config.py` and the shells of apache/tvm-vta. What a board's memory takes is
unknown: the delay is that of the simulator, and the HLS design's time is an estimate fitted to one
board (`device_server/vta/runtime/HLS.md`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tilefarm.machine import HLS_MAX_SHIFT, Board, BusTiming, Host, Limits, Target

CORTEX_A9: Final = Host(triple="armv7-unknown-linux-gnueabihf", cpu="cortex-a9")
CORTEX_A53: Final = Host(triple="aarch64-unknown-linux-gnu", cpu="cortex-a53")

HLS_LIMITS: Final = Limits(max_shift=HLS_MAX_SHIFT, kernel_uops=8192)
"""The HLS design has all of the micro-op buffer that the configuration says."""


def _hls(model: str, clock_mhz: int) -> Board:
    return Board(model=model, design="hls", runtime="original", clock_mhz=clock_mhz)


PYNQ_Z1: Final = Target(
    name="pynq-z1", host=CORTEX_A9, limits=HLS_LIMITS, board=_hls("pynq-z1", 100)
)
DE10_NANO: Final = Target(
    name="de10-nano",
    timing=BusTiming(log_burst_beats=4),
    host=CORTEX_A9,
    board=Board(model="de10-nano", runtime="original", clock_mhz=100),
)
ULTRA96: Final = Target(
    name="ultra96",
    timing=BusTiming(bus_nbytes=16),
    host=CORTEX_A53,
    limits=HLS_LIMITS,
    board=_hls("ultra96", 333),
)
ZCU104: Final = replace(ULTRA96, name="zcu104", board=_hls("zcu104", 333))

_REAL: Final = (PYNQ_Z1, DE10_NANO, ULTRA96, ZCU104)


def simulated_twin(target: Target) -> Target:
    """The same accelerator, limits and runtime beside an x86-64 host, for simulated devices."""
    return replace(target, name=f"sim-{target.name}", host=Host())


BOARDS: Final = tuple(each for real in _REAL for each in (real, simulated_twin(real)))
