"""`tilefarm bench simulator`: the figures of small streams, and how they are shown."""

from __future__ import annotations

import itertools
import json

import pytest
from kit.golden import Golden
from kit.kernels.programs import SIM

from driver.benchmarks.simulator import (
    SCALAR,
    StreamFigures,
    document,
    measure_simulator,
    network_convolutions,
    network_seconds,
    table,
    total,
)
from driver.program.vta.layers import Convolution


def figures(name: str, cycles: int, both_seconds: float) -> StreamFigures:
    return StreamFigures(
        name=name,
        instructions=100,
        cycles=cycles,
        macs=60_000_000,
        functional_seconds={"avx2": 0.002, SCALAR: 0.06},
        both_seconds=both_seconds,
        extra_nbytes=1 << 20,
    )


def test_small_streams_are_measured_and_checked() -> None:
    ticks = itertools.count()
    layers = {"C2": Convolution(16, 16, 6, 6, 3, 1, 1), "C4": Convolution(32, 16, 4, 4, 1, 2, 0)}
    found = measure_simulator(SIM, lambda: float(next(ticks)), runs=2, layers=layers)
    assert [f.name for f in found] == ["C2", "C4"]
    assert [f.macs for f in found] == [9 * 36 * 256, 2 * 4 * 256]
    for f in found:
        assert f.cycles > 0
        assert SCALAR in f.functional_seconds
        assert set(f.functional_seconds.values()) == {1.0}
        assert 0 <= f.extra_nbytes < 64 << 20


def test_figures_as_a_table(golden: Golden) -> None:
    golden("\n".join(table([figures("C2", 500_000, 0.004), figures("C4", 70_000, 0.0025)])))


def test_the_network_counts_its_convolutions() -> None:
    found = [figures("C2", 1, 0.5), figures("C4", 1, 0.25)]
    assert network_convolutions(found) == 5
    assert network_seconds(found) == pytest.approx(4 * 0.5 + 0.25)
    assert total(found).both_seconds == pytest.approx(0.75)


def test_the_document_is_json() -> None:
    made = json.loads(json.dumps(document([figures("C2", 500_000, 0.004)])))
    (stream,) = made["streams"]
    assert stream["gmacs"] == {"avx2": pytest.approx(30), SCALAR: pytest.approx(1)}
    assert stream["mcycles_per_second"] == pytest.approx(250)
    assert made["total"]["name"] == "sum"
