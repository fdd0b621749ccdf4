"""Programs that VTA's RTL ran: cycles, memory and the time of every instruction must be equal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from kit.shared import shared_folder
from tilefarm.target import BusTiming, Target

from device_server.vta.library.library import VtaLibrary


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """One program with the answer of the RTL."""

    instructions: npt.NDArray[np.uint64]
    before: npt.NDArray[np.uint8]
    after: npt.NDArray[np.uint8]
    cycles: int
    spans: npt.NDArray[np.int64]
    log_burst_beats: int


def _files() -> list[Path]:
    shared = shared_folder()
    return sorted((shared / "rtl-vectors").glob("*.npz")) if shared else []


def _overwrite(
    image: npt.NDArray[np.uint8], segments: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]
) -> None:
    position = 0
    for base, nbytes in segments.tolist():
        image[base : base + nbytes] = data[position : position + nbytes]
        position += nbytes


def _read(path: Path) -> Vector:
    with np.load(path, allow_pickle=False) as archive:
        fields = {name: archive[name] for name in archive.files}
    before = np.zeros(int(fields["dram_size"]), np.uint8)
    _overwrite(before, fields["segments"], fields["dram"])
    after = before.copy()
    _overwrite(after, fields["after_segments"], fields["after"])
    return Vector(
        instructions=fields["insns"],
        before=before,
        after=after,
        cycles=int(fields["cycles"]),
        spans=np.stack([fields["t_start"], fields["t_end"]], axis=1).astype(np.int64),
        log_burst_beats=json.loads(str(fields["meta"]))["len_bits"],
    )


@pytest.mark.skipif(not _files(), reason="no folder shared/rtl-vectors next to the repository")
@pytest.mark.parametrize("path", _files(), ids=lambda path: path.stem)
def test_cycles_memory_and_spans_equal_those_of_the_rtl(library: VtaLibrary, path: Path) -> None:
    vector = _read(path)
    timing = BusTiming(log_burst_beats=vector.log_burst_beats)
    library.configure(Target(name="rtl", timing=timing))
    result = library.run_stream(vector.instructions, vector.before, timeline=True)
    assert result.counters.cycles == vector.cycles
    np.testing.assert_array_equal(result.dram, vector.after)
    np.testing.assert_array_equal(result.spans, vector.spans)
