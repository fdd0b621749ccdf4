"""Transformers as exporters write them: imported, folded to few operators, quantized."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.networks.onnx_models import saved
from kit.networks.transformers import vision_transformer
from onnx.reference import ReferenceEvaluator
from tilefarm.target import TARGETS

from driver.network import import_model
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Graph, MatMul, Reshape, Unary
from driver.network.integer.reference import run_integer
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize


def operators(graph: Graph) -> list[str]:
    return [type(node.op).__name__ for node in graph.nodes if not isinstance(node.op, Reshape)]


@pytest.mark.parametrize("decomposed", [False, True])
def test_a_vision_transformer_is_what_the_file_says(decomposed: bool, tmp_path: Path) -> None:
    made = vision_transformer(decomposed=decomposed)
    graph = import_model(saved(made, tmp_path))
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
    results: Any = ReferenceEvaluator(made).run(None, {"x": x})
    (found,) = run_float(graph, {"x": x}).values()
    np.testing.assert_allclose(found, results[0], rtol=1e-3, atol=1e-3)


def test_normalizations_gelu_and_scales_of_many_operators_are_one_each(tmp_path: Path) -> None:
    whole, parts = (
        import_model(saved(vision_transformer(decomposed=each), tmp_path)) for each in (False, True)
    )
    assert operators(parts) == operators(whole)
    scales = [[n.op.scale for n in g.nodes if isinstance(n.op, MatMul)] for g in (whole, parts)]
    assert scales[1] == pytest.approx(scales[0])
    counted = Counter(operators(whole))
    assert counted["Normalize"] == 3
    assert counted["MatMul"] == 2
    assert counted["Product"] == 0
    assert [n.op.function for n in whole.nodes if isinstance(n.op, Unary)] == ["gelu"]


def test_between_its_ends_a_block_moves_the_values_of_its_attention(tmp_path: Path) -> None:
    graph = import_model(saved(vision_transformer(), tmp_path))
    kinds = operators(graph)
    assert kinds[kinds.index("MatMul") :] == [
        *("MatMul", "Softmax", "Gather", "MatMul", "Conv2d", "Gather", "Add"),
        *("Normalize", "Conv2d", "Unary", "Conv2d", "Add"),
        *("Normalize", "Affine", "Gather", "Dense"),
    ]


def test_its_products_run_on_the_accelerator(tmp_path: Path) -> None:
    graph = import_model(saved(vision_transformer(), tmp_path))
    x = np.random.default_rng(1).standard_normal((8, 3, 8, 8)).astype(np.float32)
    quantized = quantize(graph, x)
    steps = partition_network(quantized, TARGETS["sim"]).steps
    there = sum(step.macs for step in steps if step.place == "accelerator")
    assert there == sum(step.macs for step in steps)
    (wanted,), (found,) = (
        each.values() for each in (run_float(graph, {"x": x}), run_integer(quantized, {"x": x}))
    )
    noise = np.square(found - wanted).mean() / np.square(wanted).mean()
    assert 10 * np.log10(1 / noise) > 25
