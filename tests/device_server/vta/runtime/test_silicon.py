"""The estimate of the HLS design's time against a Pynq board, on schedules that TopHub logged."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tilefarm.target import TARGETS

from device_server.vta.library.library import StreamResult, TimingBasis, VtaLibrary
from device_server.vta.library.native import Strictness, TimingModel

from .streams import memory, words_of
from .tophub import GEOMETRY, IMAGE_NBYTES, LAYERS, Measured, stream_of

TOLERANCE = 0.08
"""The worst is C4, 7.2 % too fast; the log's own sessions differ by 14 %."""

CLOCK_HZ = 100e6
MATRIX_BOUND = ("C2", "C3", "C5", "C6", "C8")

TVM_STREAMS = {
    "C2": (517465, 750288, 200704),
    "C3": (262605, 721200, 100352),
    "C4": (81857, 401616, 100352),
    "C5": (485782, 729952, 100352),
    "C6": (245735, 700032, 50176),
    "C7": (49059, 247632, 50176),
    "C8": (470149, 795776, 50176),
    "C9": (239821, 1284736, 25088),
    "C10": (37817, 219712, 25088),
    "C11": (465546, 2415744, 25088),
}
"""What TVM's own streams of these schedules take on the Chisel design: cycles; bytes read, written.
Bytes read have micro-ops in them, which TVM loads again and again."""


def run(library: VtaLibrary, layer: Measured, model: TimingModel) -> StreamResult:
    strictness = Strictness.HLS if model is TimingModel.HLS else Strictness.CHISEL
    library.configure(TARGETS["sim"], strictness=strictness, model=model)
    instructions, uops = stream_of(layer)
    image = memory(uops, GEOMETRY, IMAGE_NBYTES)
    result = library.run_stream(words_of(instructions, GEOMETRY), image)
    assert result.findings == ()
    return result


def ids(layers: Sequence[Measured]) -> list[str]:
    return [layer.name for layer in layers]


@pytest.mark.parametrize("layer", LAYERS, ids=ids(LAYERS))
def test_the_estimate_is_near_what_the_board_took(library: VtaLibrary, layer: Measured) -> None:
    result = run(library, layer, TimingModel.HLS)
    measured = layer.seconds * CLOCK_HZ
    assert result.basis is TimingBasis.ESTIMATE
    assert abs(result.counters.cycles / measured - 1) < TOLERANCE
    matrix_bound = result.counters["compute_busy_cycles"] > 0.9 * result.counters.cycles
    assert matrix_bound == (layer.name in MATRIX_BOUND)


@pytest.mark.parametrize("layer", LAYERS, ids=ids(LAYERS))
def test_the_streams_are_like_those_of_tvm(library: VtaLibrary, layer: Measured) -> None:
    counters = run(library, layer, TimingModel.CHISEL).counters
    cycles, read_nbytes, written_nbytes = TVM_STREAMS[layer.name]
    assert abs(counters.cycles / cycles - 1) < 0.05
    assert counters["out_store_nbytes"] == written_nbytes
    assert abs((counters["inp_load_nbytes"] + counters["wgt_load_nbytes"]) / read_nbytes - 1) < 0.02
