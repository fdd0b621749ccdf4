"""A program's entries, one a call: together they are the whole, each by the device's clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.networks.random_networks import Builder, conv, samples_for, window
from kit.networks.simulated import program_of
from numpy.typing import NDArray
from tilefarm.digest import Digest
from tilefarm.measurement import Measurement, Precision, RunJob
from tilefarm.target import TARGETS

from device_server.runner.runner import Runner
from device_server.vta.library.native import find_stand_in
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize
from driver.network.rewrites.fold import fold
from driver.program.model import NetworkProgram
from driver.program.profile import (
    host_calls,
    host_layers_job,
    profile_of,
    with_host_layers,
)

MHZ = 100

pytestmark = pytest.mark.whole


def a_small_program() -> tuple[NetworkProgram, dict[str, NDArray[Any]]]:
    """Two convolutions between two conversions, and one batch: a tenth of a busy core's turn."""
    rng = np.random.default_rng(0)
    builder = Builder((1, 3, 6, 6))
    first = builder.put(conv(rng, 3, 16, window(3, pad=1)), "x")
    graph = fold(builder.graph(builder.put(conv(rng, 16, 5, window(1)), first)))
    data = samples_for(graph, 0)
    program = program_of(partition_network(quantize(graph, data), TARGETS["sim"]))
    return program, {
        name: np.ascontiguousarray(x[: program.batch], np.float32) for name, x in data.items()
    }


@pytest.fixture
def ran(tmp_path: Path) -> Callable[[Runner, RunJob], Measurement]:
    def run(runner: Runner, job: RunJob) -> Measurement:
        outcome = runner.run(job, lambda digest: tmp_path / digest.hex)
        assert isinstance(outcome, Measurement), outcome
        return outcome

    return run


def test_calls_one_by_one_do_what_the_program_does(
    tmp_path: Path, ran: Callable[[Runner, RunJob], Measurement]
) -> None:
    program, batch = a_small_program()
    blobs: dict[Digest, bytes] = program.blobs(batch)
    for digest, content in blobs.items():
        (tmp_path / digest.hex).write_bytes(content)
    plain = program.run_job(batch, timeout_seconds=60)
    job = replace(plain, profile=tuple(call.entry for call in program.calls))
    with Runner(target=program.target) as simulator:
        measured = ran(simulator, job)
        host = host_calls(program, profile_of(program, measured))
        timed_host = ran(simulator, host_layers_job(program, batch, host, timeout_seconds=60))
        assert measured.counters == ran(simulator, plain).counters, "profiling changes nothing"
    counted = profile_of(program, measured)
    accelerated = [layer.cost for layer in counted.layers if "conv2d" in layer.kernel]
    assert None not in accelerated
    assert len(accelerated) == 2
    assert len(counted.layers) > 2, "the processor converts"
    assert sum(layer.cost is not None for layer in counted.layers) == 2
    assert counted.network_cost
    assert counted.layers_cost >= counted.network_cost, "no layer overlaps another"
    both = with_host_layers(counted, timed_host)
    assert both.layers_cost == counted.layers_cost, "the host's time is none of the cycles"
    for layer in both.layers:
        assert (layer.took.wall_time is None) == (layer.cost is not None)

    timed_job = replace(job, precision=Precision(error=0.05, seconds=1.0))
    clock = {"TILEFARM_BOARD_MHZ": str(MHZ)}
    with Runner(target=program.target, library=find_stand_in(), environment=clock) as board:
        timed = profile_of(program, ran(board, timed_job))
    assert timed.by_clock
    for slow, fast in zip(timed.layers, counted.layers, strict=True):
        time = slow.took.wall_time
        assert time
        assert time.minimum_seconds >= (fast.cost or 0) / MHZ / 1e6, slow.layer
