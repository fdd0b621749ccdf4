"""What is held against a device, and that nothing is held against an honest one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kit.search.toy_spaces import timed
from tilefarm.digest import Digest
from tilefarm.measurement import (
    BufferSpec,
    CallTime,
    Counters,
    Measurement,
    Role,
    RunFailure,
    RunJob,
    Status,
    TimelineEvent,
    WallTime,
)

from driver.farm.plausible import UNKNOWN, RunBounds, implausibility

JOB = RunJob(
    artifact=Digest.of(b"code"),
    entry="kernel",
    buffers=(BufferSpec(name="y", role=Role.OUTPUT, nbytes=4, fetch=True),),
    samples=2,
    repeats=2,
    profile=("first", "second"),
)
BOUNDS = RunBounds(
    least_cycles=64,
    most_cycles=1 << 51,
    least_profile_cycles=(24, 40),
    clock_mhz=100,
    counts=(("gemm_uops", 60), ("out_store_nbytes", 256)),
)
WAITED_SECONDS = 0.5
COUNTERS = Counters(
    cycles=100,
    gemm_uops=60,
    alu_uops=10,
    out_store_nbytes=256,
    compute_busy_cycles=75,
    compute_token_stall_cycles=25,
)
HONEST = Measurement(
    artifact=JOB.artifact,
    device="d",
    counters=COUNTERS,
    sample_cycles=(180, 100),
    seconds=(0.1, 0.1),
    wall_time=timed(1e-6),
    profile=(CallTime(cycles=30), CallTime(cycles=70)),
    outputs=(("y", b"12345678"),),
    timeline=(TimelineEvent(module="load", name="l", begin_cycle=3, end_cycle=3),),
    load_seconds=0.1,
    run_seconds=0.4,
)


def said(outcome: Measurement | RunFailure, bounds: RunBounds = BOUNDS, job: RunJob = JOB) -> str:
    return implausibility(outcome, job, bounds, waited_seconds=WAITED_SECONDS)


def counting(**changes: int) -> dict[str, Any]:
    return {"counters": COUNTERS.but(**changes)}


LIES: dict[str, tuple[dict[str, Any], str]] = {
    "one cycle": (counting(cycles=1), "1 cycle, where no schedule takes fewer than 64"),
    "too few": (counting(cycles=63), "63 cycles, where no schedule"),
    "too many": (counting(cycles=1 << 52), "4503599627370496 cycles, where there is work for"),
    "too many micro-ops": (counting(cycles=69), "69 cycles for 70 micro-ops"),
    "busier than it ran": (counting(load_busy_cycles=101), "101 that load was busy or stalled"),
    "stalled for longer": (counting(compute_queue_stall_cycles=1), "101 that compute was busy"),
    "work left out": (counting(gemm_uops=59), "59 gemm_uops, where the kernel has 60"),
    "work made up": (counting(gemm_uops=61), "61 gemm_uops, where the kernel has 60"),
    "nothing stored": (counting(out_store_nbytes=0), "0 out_store_nbytes, where"),
    "a sample of one cycle": ({"sample_cycles": (1, 100)}, "1 cycle and 100 for calls"),
    "a sample too short": ({"sample_cycles": (63, 100)}, "63 cycles, where no schedule"),
    "a sample of no cycles": ({"sample_cycles": (0, 100)}, "0 cycles and 100 for calls"),
    "a sample of very many": ({"sample_cycles": (100, 1 << 53)}, "for calls that do the same"),
    "another last call": (
        {"sample_cycles": (1001, 1001)},
        "100 cycles and 1001 for calls that do the same",
    ),
    "a sample too many": ({"sample_cycles": (100, 100, 100)}, "cycles of 3 samples, not of 2"),
    "longer than we waited": ({"run_seconds": 0.6}, "the run took 0.7 s, in 0.5 s that we waited"),
    "a year to load": ({"load_seconds": 3e7}, "the run took 3e+07 s"),
    "longer calls": ({"seconds": (0.1, 0.6)}, "the timed calls took 0.7 s"),
    "faster than its clock": ({"wall_time": timed(3e-7)}, "3e-07 s, where no schedule takes less"),
    "more regions than fit": (
        {"wall_time": replace(timed(1e-3), regions=1200)},
        "600 regions of 1 call took 0.6 s",
    ),
    "more calls than fit": (
        {"wall_time": replace(timed(1e-3), calls=10_000)},
        "13 regions of 10000 calls took 130 s",
    ),
    "a short layer": (
        {"profile": (CallTime(cycles=30), CallTime(cycles=39))},
        "of entry second: 39 cycles, where no schedule takes fewer than 40",
    ),
    "a layer of no time": (
        {"profile": (CallTime(wall_time=timed(1e-8)),)},
        "of entry first: 1e-08 s, where no schedule takes less than",
    ),
    "another artifact": ({"artifact": Digest.of(b"other")}, "what became of artifact"),
    "no output": ({"outputs": ()}, "outputs (none) that are not those"),
    "a short output": ({"outputs": (("y", b"1"),)}, "outputs (y: 1 bytes) that are not"),
    "another output": ({"outputs": (("x", b"12345678"),)}, "outputs (x: 8 bytes) that are not"),
    "an output twice": ({"outputs": (("y", b"12345678"),) * 2}, "that are not those"),
    "time backwards": (
        {"timeline": (TimelineEvent(module="load", name="l", begin_cycle=4, end_cycle=3),)},
        "l ends at cycle 3, before it begins",
    ),
}


@pytest.mark.parametrize(("lie", "reason"), LIES.values(), ids=LIES.keys())
def test_what_cannot_be_is_told_with_the_reason(lie: dict[str, Any], reason: str) -> None:
    assert reason in said(replace(HONEST, **lie))


@pytest.mark.parametrize(
    "outcome",
    [
        HONEST,
        replace(HONEST, counters=COUNTERS.but(cycles=1 << 50), sample_cycles=()),
        replace(HONEST, counters=None, sample_cycles=(), timeline=()),
        replace(HONEST, counters=Counters(), sample_cycles=(0, 0)),
        replace(
            HONEST,
            wall_time=WallTime(
                minimum_seconds=3.3e-7,
                p10_seconds=1e-6,
                median_seconds=1e-6,
                p90_seconds=1.0,
                calls=1000,
                regions=100,
            ),
        ),
        replace(HONEST, profile=()),
        replace(HONEST, seconds=()),
        RunFailure(artifact=JOB.artifact, status=Status.RUN_CRASH, why="", run_seconds=0.5),
    ],
    ids=["right", "slow", "countless", "all zero", "uneven", "old", "untimed", "failed"],
)
def test_an_honest_device_is_believed(outcome: Measurement | RunFailure) -> None:
    assert said(outcome) == ""


def test_what_nobody_knows_is_held_against_nobody() -> None:
    free = Counters(cycles=1)
    assert said(replace(HONEST, counters=free, sample_cycles=(1, 1)), UNKNOWN) == ""


def test_a_failure_has_bounds_as_well() -> None:
    failure = RunFailure(artifact=JOB.artifact, status=Status.RUN_CRASH, why="", run_seconds=9.0)
    assert "the run took 9 s" in said(failure)
    assert "what became of artifact" in said(replace(failure, artifact=Digest.of(b"other")))


def test_a_board_may_be_clocked_higher_than_its_target_says() -> None:
    assert BOUNDS.least_seconds(200) == pytest.approx(1e-6)
    assert UNKNOWN.least_seconds(10_000) == pytest.approx(1e-6), "at ten gigahertz"
