"""Files that were quantized before, drawn at random: one answer of ONNX, ours, and the device's."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.networks.onnx_runtime import runtime_answers
from kit.networks.random_quantized import RandomDynamicModel, RandomModel
from kit.networks.simulated import Simulators
from numpy.typing import NDArray
from tilefarm.target import Target, load_target

from driver.network.frontend.for_target import import_for
from driver.network.integer.qir import QuantGraph
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.options import Quantization
from driver.program.onnx_runtime import has_peer

Inputs: TypeAlias = dict[str, NDArray[np.float32]]

ODD = (np.nan, np.inf, -np.inf, -0.0, 1e-42, 1e20)
"""What may be among inputs."""


def drawn(
    seed: int, *, is_exact: bool, folder: Path, is_usual: bool = False
) -> tuple[Path, NDArray[np.float32]]:
    """A file and an input, some with what is no number, or hardly one, unless `is_usual`."""
    rng = np.random.default_rng(seed)
    is_dynamic = seed % 4 == 3
    made = (
        RandomDynamicModel(seed, is_exact=is_exact)
        if is_dynamic
        else RandomModel(seed, is_whole=is_exact)
    )
    path = folder / f"{seed}.onnx"
    onnx.save(made.build(), path)
    x = rng.normal(0, 1.2, made.shape).astype(np.float32)
    if seed % 5 == 4 and not (is_dynamic or is_usual):
        x.reshape(-1)[rng.integers(0, x.size, 3)] = rng.choice(ODD, 3)
    return path, x


def quantized(path: Path, x: NDArray[np.float32], target: Target) -> tuple[QuantGraph, Inputs]:
    graph = import_for(target, path)
    (given_,) = graph.inputs
    data = {given_.name: np.ascontiguousarray(x.transpose(given_.axes))}
    calibration = data if target.has_accelerator else None
    return quantize_for(target, graph, calibration, Quantization()), data


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3", "cpu:neoverse-n1"])
@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 2**31))
def test_calls_of_kernels_are_onnx_s_arithmetic(
    target: str, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path, x = drawn(seed, is_exact=True, folder=tmp_path_factory.mktemp("files"))
    aim = load_target(target)
    graph, data = quantized(path, x, aim)
    found = run_network(partition_network(graph, aim), data)
    for name, wanted in run_integer(graph, data).items():
        np.testing.assert_array_equal(found[name], wanted)
    if has_peer():
        for name, theirs in _answers_of_runtime(path, x).items():
            np.testing.assert_array_equal(found[name].reshape(theirs.shape), theirs)


def _answers_of_runtime(path: Path, x: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    return {name: each[0] for name, each in runtime_answers(path, x[None]).items()}


@pytest.mark.parametrize("target", ["cpu", "cpu@2", "sim"])
@settings(max_examples=examples(5), deadline=None)
@given(seed=st.integers(0, 2**31))
def test_devices_give_the_reference_s_bits(
    simulators: Simulators, target: str, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    aim = load_target(target)
    folder = tmp_path_factory.mktemp("files")
    path, x = drawn(seed, is_exact=False, folder=folder, is_usual=aim.has_accelerator)
    graph, data = quantized(path, x, aim)
    simulators.assert_same(graph, aim, data)
