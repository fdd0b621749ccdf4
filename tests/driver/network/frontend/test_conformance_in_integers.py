"""ONNX's own test cases in integers: kernel calls mean what the integer network means."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from kit.networks.simulated import PAIRS
from tilefarm.errors import DataError, ModelError
from tilefarm.target import TARGETS, Target

from driver.network.frontend.conformance.cases import Case, conformance_cases
from driver.network.frontend.conformance.conformance import taken
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize
from driver.program.evaluate import differing_samples


def became(case: Case, folder: Path, target: Target) -> str:
    """What became of a case that calibrates itself: a refusal's type, equal, or how many differ."""
    found = taken(case, folder)
    if isinstance(found, str):
        return "skipped"
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
def test_all_cases(target: Target, tmp_path: Path) -> None:
    counts = Counter(became(case, tmp_path, target) for case in conformance_cases())
    assert counts["equal"] > 200
    assert counts["ModelError"] + counts["DataError"] < counts["equal"] / 20
    assert counts.keys() <= {"equal", "skipped", "ModelError", "DataError"}
