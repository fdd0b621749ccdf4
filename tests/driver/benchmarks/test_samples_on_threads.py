"""Samples on threads: the fastest stretch counts, and the answers are those of one at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kit.networks.random_networks import Builder, conv, samples_for, window

from compile_worker.space import generate
from driver.benchmarks.samples_on_threads import fastest, lines_of_threads, samples_on_threads
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize
from driver.program.simulated import assembled
from driver.targets import usable_target


def test_the_fastest_stretch_counts() -> None:
    even = [0.001 * at for at in range(8)]
    assert fastest([even]) == pytest.approx(0.001)
    assert fastest([even, [each + 0.0005 for each in even]]) == pytest.approx(0.0005)
    disturbed = [each + (0.5 if each > 0.0035 else 0.0) for each in even]
    assert fastest([disturbed]) == pytest.approx(0.001)


def test_a_sample_on_each_thread_gives_the_same_answers(tmp_path: Path) -> None:
    rng, b = np.random.default_rng(0), Builder((1, 16, 6, 6))
    graph = b.graph(b.put(conv(rng, 16, 32, window(3, pad=1)), "x"))
    data = samples_for(graph, 0)
    network = partition_network(quantize(graph, data), usable_target("cpu@2"))
    spaces = {work: generate(work, network.target) for work, _ in network.workloads()}
    traces = {work: space.trace(dict(space.space.default)) for work, space in spaces.items()}
    program = assembled(network, traces)
    found = samples_on_threads(program, data, tmp_path, turns=1)
    assert (found.threads, found.differing) == (2, 0)
    assert found.made.nbytes >= 2 * program.scratch_nbytes
    assert found.gap > 0.9, "two threads are not more than twice as fast as one"
    assert next(lines_of_threads(found)).startswith("2 threads: ")
