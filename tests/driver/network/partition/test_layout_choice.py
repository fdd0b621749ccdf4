"""Blocks that are chosen for a network as a whole: no other choice moves fewer bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from kit.networks.onnx_models import model, node, saved
from numpy.typing import NDArray
from tilefarm.target import load_target

from driver.network.examples.topologies import SMALL_TOPOLOGIES, random_images, write_topology
from driver.network.frontend.onnx import import_model
from driver.network.integer.network import Network
from driver.network.integer.qir import QuantGraph
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition import layout_choice
from driver.network.partition.layout_choice import (
    MOVED,
    ROW_MAJOR,
    Layout,
    Option,
    Options,
    chosen_ways,
)
from driver.network.partition.partitioner import partition_network
from driver.network.partition.qlinear_fusion import with_fused_operands
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.options import Quantization

TARGET: Final = load_target("cpu:x86-64-v3")
SIDE: Final = 4
"""Rows and columns of an image."""
MOST_CHOICES: Final = 30_000
"""That are all looked at."""


def quantized_form(path: Path, data: NDArray[np.float32]) -> QuantGraph:
    graph = import_model(path)
    return quantize_for(TARGET, graph, {graph.inputs[0].name: data}, Quantization())


def drawn(rng: np.random.Generator, steps: int) -> onnx.ModelProto:
    """Images and the operators on them, each on what one of the last three has made."""
    values: dict[str, Any] = {}
    nodes = []
    first = int(rng.choice([3, 16, 20]))
    made = {"x": first}
    for step in range(steps):
        name, near = f"t{step}", list(made)[-3:]
        a = str(rng.choice(near))
        alike = [each for each in made if made[each] == made[a]]
        kind = rng.choice(["Conv", "Sigmoid", "Add", "Concat", "MaxPool", "Turn", "Split", "Rows"])
        made[name] = made[a]
        match kind:
            case "Conv":
                made[name] = int(rng.choice([3, 16, 20]))
                values[f"{name}.w"] = rng.normal(0, 1, (made[name], made[a], 1, 1)).astype("f")
                nodes.append(node("Conv", [a, f"{name}.w"], name))
            case "Sigmoid":
                nodes.append(node("Sigmoid", [a], name))
            case "Add":
                nodes.append(node("Add", [a, str(rng.choice(alike))], name))
            case "Concat":
                b = str(rng.choice(near))
                made[name] = made[a] + made[b]
                nodes.append(node("Concat", [a, b], name, axis=1))
            case "MaxPool":
                nodes.append(node("MaxPool", [a], name, kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
            case "Turn":
                nodes.append(node("Transpose", [a], name, perm=[0, 1, 3, 2]))
            case "Rows":
                values |= {
                    f"{name}.rows": np.array([1, -1, 8]),
                    f"{name}.image": np.array([1, made[a], SIDE, SIDE]),
                }
                nodes += [
                    node("Reshape", [a, f"{name}.rows"], f"{name}.a"),
                    node("Sigmoid", [f"{name}.a"], f"{name}.b"),
                    node("Reshape", [f"{name}.b", f"{name}.image"], name),
                ]
            case _:
                made[name] = min(made[a], 16)
                values |= {
                    f"{name}.{end}": np.array([at])
                    for end, at in (("from", 0), ("to", made[name]), ("axis", 1))
                }
                ends = [f"{name}.{end}" for end in ("from", "to", "axis")]
                nodes.append(node("Slice", [a, *ends], name))
    last = list(made)[-1]
    if rng.random() < 0.5:
        nodes.append(node("Conv", [last, "last"], "y"))
        values["last"] = rng.normal(0, 1, (5, made[last], 1, 1)).astype("f")
    else:
        nodes += [node("Flatten", [last], "flat"), node("MatMul", ["flat", "last"], "y")]
        values["last"] = rng.normal(0, 1, (made[last] * SIDE * SIDE, 5)).astype("f")
    return model(nodes, values, x=(1, first, SIDE, SIDE))


def moved_nbytes(options: Options, choice: Mapping[str, Option]) -> float:
    """Read and written by moves between blocks; infinite if such a choice cannot be."""
    made = {**options.given, **{name: option.makes for name, option in choice.items()}}
    moves: set[tuple[str, Layout]] = set()
    for option in choice.values():
        for value, layout in option.reads:
            if option.way.in_place and made[value] != layout:
                return math.inf
            moves.add((value, layout))
    moves |= {(value, options.layout(value, ROW_MAJOR)) for value in options.given_out}
    return sum(
        made[value].nbytes + layout.nbytes for value, layout in moves if made[value] != layout
    )


def cost(options: Options, choice: Mapping[str, Option]) -> float:
    own = sum(option.cost for option in choice.values())
    return MOVED * moved_nbytes(options, choice) + own


def chosen(graph: QuantGraph, options: Options) -> Mapping[str, Option]:
    ways = chosen_ways(graph)
    return {
        name: next(each for each in of if each.way == ways[name]) for name, of in options.of.items()
    }


def relayout_nbytes(network: Network) -> int:
    return sum(
        math.prod(spec.shape) * spec.dtype.nbytes
        for step in network.steps
        if step.workload.operator == "relayout"
        for spec in (*step.workload.inputs, *step.workload.outputs)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL_TOPOLOGIES)
def test_in_known_networks_it_matters_little_what_a_move_costs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were it otherwise, kernels and moves had to be timed in every layout."""
    write_topology(name, tmp_path / "model.onnx")
    graph = with_fused_operands(quantized_form(tmp_path / "model.onnx", random_images(2)))
    wanted = chosen_ways(graph)
    for moved in (1, 4, 16):
        monkeypatch.setattr(layout_choice, "MOVED", moved)
        assert chosen_ways(graph) == wanted


@pytest.mark.parametrize("seed", range(60))
def test_no_choice_costs_less_and_the_program_moves_what_it_says(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    made = drawn(rng, steps=7)
    x = made.graph.input[0].type.tensor_type.shape.dim
    data = rng.normal(0, 1, (4, *(each.dim_value for each in x[1:]))).astype(np.float32)
    graph = with_fused_operands(quantized_form(saved(made, tmp_path), data))
    options = Options(graph)
    found = chosen(graph, options)
    if math.prod(map(len, options.of.values())) <= MOST_CHOICES:
        others = (
            dict(zip(options.of, each, strict=True)) for each in product(*options.of.values())
        )
        assert cost(options, found) == min(cost(options, each) for each in others)
    assert cost(options, found) <= cost(options, {name: of[0] for name, of in options.of.items()})
    network = partition_network(graph, TARGET)
    name = graph.inputs[0].name
    for each in data:
        part = {name: each[None]}
        wanted, answer = run_integer(graph, part), run_network(network, part)
        for output, values in wanted.items():
            np.testing.assert_array_equal(answer[output], values)
    assert relayout_nbytes(network) == moved_nbytes(options, found)
