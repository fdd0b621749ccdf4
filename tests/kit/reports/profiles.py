"""Profiles of a small program, as a device that counts cycles and one timed by the clock have them.

Layers: one of the processor, two of the accelerator of which one takes twice what was predicted.
"""

from __future__ import annotations

from dataclasses import replace

from tilefarm.digest import Digest
from tilefarm.machine import Board
from tilefarm.measurement import CallTime, Counters, Measurement, WallTime
from tilefarm.target import TARGETS

from driver.program.model import LayerCall, NetworkProgram, Parameter
from driver.program.profile import profile_of
from driver.report.profile import Profile

_CYCLES = (0, 1000, 3000)


def a_program(name: str = "conv1", clock_mhz: int = 0) -> NetworkProgram:
    """Three calls; `clock_mhz` is the board's."""
    target = replace(TARGETS["sim"], board=Board(clock_mhz=clock_mhz))
    return NetworkProgram(
        name="small",
        target=target,
        entry="network",
        code=b"code",
        constants=b"constants",
        arena_nbytes=0,
        inputs=(Parameter(name="x", shape=(1, 4), axes=(0, 1)),),
        outputs=(Parameter(name="y", shape=(1, 2)),),
        calls=(
            LayerCall(entry="network_call0", layer="x.int8", kernel="quantize"),
            LayerCall(entry="network_call1", layer=name, kernel="conv2d_a", predicted_cycles=1000),
            LayerCall(
                entry="network_call2", layer="dense", kernel="dense_b", predicted_cycles=1500
            ),
        ),
    )


def counted_profile(name: str = "conv1") -> Profile:
    """Of a device that counts cycles."""
    calls = tuple(CallTime(cycles=cycles) for cycles in _CYCLES)
    measured = Measurement(
        artifact=Digest.of(b""), device="sim0", counters=Counters(cycles=3200), profile=calls
    )
    return profile_of(a_program(name), measured)


def timed_profile(name: str = "conv1", clock_mhz: int = 0) -> Profile:
    """Of a device of 100 MHz that counts nothing; the processor takes a microsecond."""
    calls = tuple(CallTime(wall_time=_time(max(cycles, 100) / 1e8)) for cycles in _CYCLES)
    measured = Measurement(
        artifact=Digest.of(b""),
        device="board0",
        counters=None,
        wall_time=_time(33e-6),
        profile=calls,
    )
    return profile_of(a_program(name, clock_mhz), measured)


def _time(seconds: float) -> WallTime:
    return WallTime(
        minimum_seconds=seconds * 0.98,
        p10_seconds=seconds * 0.99,
        median_seconds=seconds,
        p90_seconds=seconds * 1.02,
        calls=1,
        regions=900,
        rejected=7,
    )
