"""The library in this process: compiled entries, recorded streams, vector paths, stalls."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from kit.children.blobs import Blobs
from tilefarm.digest import Digest
from tilefarm.errors import DataError
from tilefarm.measurement import Counters
from tilefarm.target import TARGETS, BusTiming, Target, VtaConfig

from device_server.vta.library.library import (
    HardwareFinding,
    RecordedStream,
    TimingBasis,
    VtaError,
    VtaLibrary,
)
from device_server.vta.library.native import Strictness, TimingModel

ROWS, BLOCK = 6, 16
TOO_LONG = 13


def operands() -> tuple[bytes, bytes, bytes]:
    """x, w and low byte of x . w transposed >> 4, as `dense` of good.c computes it."""
    rng = np.random.default_rng(3)
    x = rng.integers(-128, 128, (ROWS, BLOCK), dtype=np.int8)
    w = rng.integers(-128, 128, (BLOCK, BLOCK), dtype=np.int8)
    y = ((x.astype(np.int32) @ w.astype(np.int32).T) >> 4).astype(np.int8)
    return x.tobytes(), w.tobytes(), y.tobytes()


@pytest.fixture
def good(blobs: Blobs, compiled: dict[str, Digest]) -> Path:
    return blobs.path(compiled["good"])


def dense(library: VtaLibrary, artifact: Path) -> RecordedStream:
    """Run `dense`, check its result, and give the stream that it made."""
    x, w, y = operands()
    library.record(True)
    result = library.run_entry(artifact, "dense", [x, w, len(y)])
    library.record(False)
    assert result.buffers == (x, w, y)
    (stream,) = library.recorded()
    assert stream.counters == result.counters
    return stream


def test_an_entry_runs_in_this_process_and_its_stream_can_be_replayed(
    library: VtaLibrary, good: Path
) -> None:
    library.configure(TARGETS["sim"])
    stream = dense(library, good)
    assert not np.array_equal(stream.before, stream.after)
    again = library.run_stream(stream.instructions, stream.before)
    np.testing.assert_array_equal(again.dram, stream.after)
    assert again.counters == stream.counters
    assert again.findings == ()


def test_recording_starts_anew_and_stops(library: VtaLibrary, good: Path) -> None:
    library.configure(TARGETS["sim"])
    library.record(True)
    for _ in range(3):
        library.run_entry(good, "no_work", [])
    library.record(False)
    library.run_entry(good, "no_work", [])
    assert [stream.counters.cycles for stream in library.recorded()] == [36] * 3
    library.record(True)
    assert library.recorded() == ()


def test_kernels_that_ran_before_run_after_another_configuration(
    library: VtaLibrary, blobs: Blobs, good: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.so"
    other.write_bytes(good.read_bytes())
    for artifact in (good, other, good):
        library.configure(TARGETS["sim"])
        dense(library, artifact)


@pytest.mark.parametrize("name", ["avx512vnni", "avx2", "neon", "portable", "scalar"])
def test_all_vector_paths_give_the_same(library: VtaLibrary, good: Path, name: str) -> None:
    if name not in library.vector_paths():
        pytest.skip("this machine cannot run it")
    library.configure(TARGETS["sim"])
    library.use_vector_path(name)
    try:
        dense(library, good)
    finally:
        library.use_vector_path(library.vector_paths()[0])


def test_an_unknown_vector_path_is_told(library: VtaLibrary) -> None:
    assert library.vector_paths()[-2:] == ("portable", "scalar")
    with pytest.raises(DataError, match="'abacus' is no vector path"):
        library.use_vector_path("abacus")


def test_an_entry_that_is_not_there_or_not_loadable_is_a_data_error(
    library: VtaLibrary, good: Path, tmp_path: Path
) -> None:
    library.configure(TARGETS["sim"])
    with pytest.raises(DataError, match="has no entry nothing"):
        library.run_entry(good, "nothing", [])
    text = tmp_path / "text.so"
    text.write_text("not ELF")
    with pytest.raises(DataError, match="cannot load"):
        library.run_entry(text, "entry", [])


def test_what_the_runtime_refuses_is_an_error_with_its_reason(
    library: VtaLibrary, blobs: Blobs, compiled: dict[str, Digest]
) -> None:
    library.configure(TARGETS["sim"])
    bad = blobs.path(compiled["bad"])
    with pytest.raises(VtaError, match=r"INP elements 2046\.\.2049 exceed"):
        library.run_entry(bad, "exceeds_the_scratchpad", [64])
    with pytest.raises(DataError, match="returned 7"):
        library.run_entry(bad, "returns_error", [64])


def test_a_stream_of_too_many_micro_ops_is_refused(library: VtaLibrary, good: Path) -> None:
    library.configure(TARGETS["sim"])
    stream = dense(library, good)
    limit_uops = ctypes.CDLL(str(library.path)).tilefarm_vta_limit_uops
    limit_uops(ctypes.c_uint64(3 * ROWS - 1))
    try:
        with pytest.raises(VtaError, match="18 micro-ops by now, the limit is 17") as caught:
            library.run_stream(stream.instructions, stream.before)
        limit_uops(ctypes.c_uint64(3 * ROWS))
        library.run_stream(stream.instructions, stream.before)
    finally:
        limit_uops(ctypes.c_uint64(1 << 31))
    assert caught.value.status == TOO_LONG


def stalls_and_busy(counters: Counters, module: str) -> int:
    causes = ("busy", "token_stall", "queue_stall", "memory_stall")
    return sum(counters[f"{module}_{cause}_cycles"] for cause in causes)


def test_stalls_are_told_by_module_and_cause(library: VtaLibrary, good: Path) -> None:
    library.configure(TARGETS["sim"])
    counters = dense(library, good).counters
    for module in ("load", "compute", "store"):
        assert 0 < stalls_and_busy(counters, module) <= counters.cycles
    assert counters["load_token_stall_cycles"] == 0
    assert counters["load_memory_stall_cycles"] > 0
    assert counters["store_token_stall_cycles"] > counters["store_busy_cycles"]
    assert counters["compute_token_stall_cycles"] > 0


@pytest.mark.parametrize(
    ("target", "model", "basis"),
    [
        (TARGETS["sim"], TimingModel.CHISEL, TimingBasis.RTL),
        (TARGETS["sim-de10"], TimingModel.CHISEL, TimingBasis.RTL),
        (TARGETS["sim-mul"], TimingModel.CHISEL, TimingBasis.EXTRAPOLATED),
        (
            Target(name="wide", timing=BusTiming(bus_nbytes=16)),
            TimingModel.CHISEL,
            TimingBasis.EXTRAPOLATED,
        ),
        (
            Target(name="pairs", vta=VtaConfig(log_batch=1)),
            TimingModel.CHISEL,
            TimingBasis.EXTRAPOLATED,
        ),
        (TARGETS["sim"], TimingModel.HLS, TimingBasis.ESTIMATE),
    ],
)
def test_what_cycles_are_worth_is_told(
    library: VtaLibrary, target: Target, model: TimingModel, basis: TimingBasis
) -> None:
    library.configure(target, model=model)
    result = library.run_stream(np.array([[3, 0]], np.uint64), np.zeros(0, np.uint8))
    assert result.basis is basis


def test_findings_say_where_a_program_would_be_wrong(library: VtaLibrary) -> None:
    multiply = [4 | 1 << 21 | 1 << 35 | 1 << 49, 4 << 44]
    words = np.array([multiply, [3, 0]], np.uint64)
    library.configure(TARGETS["sim"], strictness=Strictness.CHISEL)
    (finding,) = library.run_stream(words, np.zeros(0, np.uint8)).findings
    assert finding == HardwareFinding("error", "mul", 0, "MUL: fetch does not know it and hangs")
