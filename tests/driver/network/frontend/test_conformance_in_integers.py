"""ONNX's own test cases in integers: kernel calls mean what the integer network means."""

from __future__ import annotations

from collections import Counter

import pytest
from kit.networks.simulated import PAIRS
from tilefarm.errors import DataError, ModelError
from tilefarm.target import TARGETS, Target

from driver.network.frontend.conformance.cases import conformance_cases
from driver.network.frontend.conformance.conformance import Taken, taken
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize
from driver.program.evaluate import differing_samples


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> list[Taken]:
    """Those of all cases that are taken."""
    folder = tmp_path_factory.mktemp("cases")
    every = (taken(case, folder) for case in conformance_cases())
    return [each for each in every if isinstance(each, Taken)]


def became(found: Taken, target: Target) -> str:
    """What became of a case that calibrates itself: a refusal's type, equal, or how many differ."""
    try:
        quantized = quantize(found.graph, found.inputs, block=target.lanes.block)
        network = partition_network(quantized, target)
    except (ModelError, DataError) as refusal:
        return type(refusal).__name__
    answers = run_network(network, found.inputs)
    differing = differing_samples(answers, run_integer(quantized, found.inputs))
    return f"{differing} samples differ" if differing else "equal"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("target", [TARGETS["sim"], PAIRS], ids=lambda target: target.name)
def test_all_cases(target: Target, networks: list[Taken]) -> None:
    counts = Counter(became(each, target) for each in networks)
    assert counts["equal"] > 200
    assert counts["ModelError"] + counts["DataError"] < counts["equal"] / 20
    assert counts.keys() <= {"equal", "ModelError", "DataError"}
