"""What the nodes of a file became: every node of the folded graph says what is inside it."""

from __future__ import annotations

from pathlib import Path

from kit.networks.onnx_models import saved
from kit.networks.transformers import vision_transformer

from driver.network import import_model
from driver.network.frontend.origins import origins


def test_what_the_importer_adds_belongs_to_the_results_it_is_added_for(tmp_path: Path) -> None:
    file = saved(vision_transformer(), tmp_path)
    graph = import_model(file)
    found = origins(file, graph)
    inside = {node.name: [each.operator for each in found[node.output]] for node in graph.nodes}
    by_name = {node.name: type(node.op).__name__ for node in graph.nodes}
    assert [(by_name[name], inside[name]) for name in ("t5_n", "t6_n", "t14_n", "t17_n")] == [
        ("Normalize", ["LayerNormalization"]),
        ("Conv2d", ["MatMul", "Add"]),
        ("MatMul", ["Transpose", "MatMul", "Mul"]),
        ("MatMul", ["MatMul"]),
    ]
    assert ["Div", "Erf", "Add", "Mul", "Mul"] in inside.values()
    assert inside["t36_n"] == ["Gemm"]
