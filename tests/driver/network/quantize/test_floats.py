"""Which operators stay in float: what needs it, what the user names, and what lies beside."""

from __future__ import annotations

import numpy as np
import pytest
from kit.networks.random_networks import Builder, conv, dense, samples_for, window
from tilefarm.errors import SettingsError
from tilefarm.target import TARGETS

from driver.network.graph.float_run import run_float
from driver.network.graph.ir import (
    Add,
    Affine,
    Concat,
    Gather,
    Graph,
    MatMul,
    MaxPool2d,
    Normalize,
    Product,
    Reduce,
    Reshape,
    Softmax,
    Unary,
)
from driver.network.integer import arithmetic as integer
from driver.network.integer.qir import QGather, QSoftmax, QuantGraph, Quantize, Real
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.floats import ANSWER, BESIDE, KEPT, float_nodes
from driver.network.quantize.options import Quantization
from driver.network.quantize.quantizer import quantize, quantize_with
from driver.network.quantize.ranges import tensors_without_range

RNG = np.random.default_rng(4)
NORMALIZE = Normalize(axes=(2,), epsilon=1e-5)


def kinds(graph: QuantGraph) -> list[str]:
    return [
        type(node.op.op).__name__ if isinstance(node.op, Real) else f"[{type(node.op).__name__}]"
        for node in graph.nodes
    ]


def quantized(graph: Graph, *keep_float: str) -> QuantGraph:
    return quantize(graph, samples_for(graph, 0), Quantization(keep_float=keep_float))


def block() -> Graph:
    """Rows that are scaled, normalized, turned, through a function, and on the accelerator."""
    b = Builder((1, 8, 6))
    first = b.put(Affine(weight=np.ones(8, np.float32), bias=np.zeros(8, np.float32)), "x")
    rows = b.put(NORMALIZE, first)
    turned = b.put(Gather(index=np.arange(48, dtype=np.int32).reshape(8, 6).T.copy()), rows)
    flat = b.put(Unary(function="gelu"), turned)
    shares = b.put(Softmax(axis=2), flat)
    return b.graph(b.put(dense(RNG, 48, 3), b.put(Reshape(shape=(48,)), shares)))


def test_floats_go_from_one_to_the_next_and_are_made_once() -> None:
    graph = block()
    found = quantized(graph)
    assert kinds(found) == [
        *("Affine", "Normalize", "Gather", "Unary", "Softmax"),
        *("[QReshape]", "[Quantize]", "[QDense]", "[Dequantize]"),
    ]
    whys = [node.op.why for node in found.nodes if isinstance(node.op, Real)]
    assert [whys[i] for i in (0, 2, 3)] == [BESIDE] * 3
    assert "root" in whys[1]
    assert "exponentials" in whys[4]


def test_the_network_in_floats_means_what_the_calls_do() -> None:
    graph = block()
    found = quantized(graph)
    data = {name: values[:1] for name, values in samples_for(graph, 1).items()}
    (wanted,) = run_integer(found, data).values()
    (got,) = run_network(partition_network(found, TARGETS["sim"]), data).values()
    np.testing.assert_array_equal(got, wanted)
    (exact,) = run_float(graph, data).values()
    assert np.abs(wanted - exact).max() < 0.05 * np.abs(exact).max()


def test_the_logarithm_of_a_softmax_is_in_float_and_has_a_range_of_its_own() -> None:
    for log in (True, False):
        b = Builder((1, 4))
        shares = b.put(Softmax(log=log), b.put(dense(RNG, 4, 4), "x"))
        graph = b.graph(b.put(dense(RNG, 4, 4), shares))
        makers = {node.output: node.name for node in graph.nodes}
        assert (makers[shares] in float_nodes(graph)) is log
        assert (shares in tensors_without_range(graph)) is log


def test_what_is_never_an_integer_needs_no_range() -> None:
    b = Builder((1, 8, 6))
    graph = b.graph(b.put(Softmax(axis=2), b.put(NORMALIZE, "x")))
    assert tensors_without_range(graph) == []
    data = samples_for(graph, 0)
    (wanted,), (exact,) = (
        run_integer(quantize(graph, None), data).values(),
        run_float(graph, data).values(),
    )
    np.testing.assert_allclose(wanted, exact, rtol=1e-5)


def test_what_is_no_number_has_the_same_bits_as_an_integer_everywhere() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 0.5, 1.5], np.float32)
    np.testing.assert_array_equal(integer.quantize(values, inv_scale=1.0), [-128, 127, -128, 0, 2])


def test_a_softmax_of_rows_stays_a_table() -> None:
    b = Builder((1, 5))
    found = quantized(b.graph(b.put(Softmax(), "x")))
    assert any(isinstance(node.op, QSoftmax) for node in found.nodes)
    assert not any(isinstance(node.op, Real) for node in found.nodes)


def test_a_float_that_two_read_is_made_real_once() -> None:
    b = Builder((1, 4, 6, 6))
    image = b.put(conv(RNG, 4, 4, window()), "x")
    mean = b.put(Reduce(kind="mean", axes=(2, 3)), image)
    largest = b.put(Reduce(kind="max", axes=(2, 3)), image)
    found = quantized(b.graph(mean, largest, image))
    assert kinds(found).count("[Dequantize]") == 1


def test_a_gate_by_means_is_in_float_but_not_the_addition_before() -> None:
    b = Builder((1, 4, 6, 6))
    image = b.put(conv(RNG, 4, 4, window()), "x")
    total = b.put(Add(), image, image)
    active = b.put(Unary(function="hard_swish"), total)
    mean = b.put(Reduce(kind="mean", axes=(2, 3)), active)
    gated = b.put(Product(), active, mean)
    found = quantized(b.graph(b.put(conv(RNG, 4, 3, window()), gated)))
    assert kinds(found) == [
        *("[Quantize]", "[QConv2d]", "[QAdd]", "[Dequantize]", "Unary", "Reduce", "Product"),
        *("[Quantize]", "[QConv2d]", "[Dequantize]"),
    ]


def test_an_addition_of_a_float_stays_on_the_accelerator_where_nobody_wants_a_float() -> None:
    b = Builder((1, 4, 6, 6))
    first = b.put(conv(RNG, 4, 4, window(pad=1)), "x")
    total = b.put(Add(), b.put(conv(RNG, 4, 4, window(pad=1)), first), first)
    graph = b.graph(b.put(conv(RNG, 4, 3, window()), total))
    assert float_nodes(graph, ["n0"]) == {"n0": KEPT}
    assert float_nodes(graph, ["n0", "n3"]) == {"n0": KEPT, "n3": KEPT, "n2": BESIDE}


def test_an_offset_that_floats_alone_read_is_in_float() -> None:
    b = Builder((1, 4, 6))
    scores = b.put(MatMul(), "x", "x")
    biased = b.put(
        Affine(weight=np.ones(6, np.float32), bias=np.arange(6, dtype=np.float32)), scores
    )
    graph = b.graph(b.put(Softmax(axis=2), biased))
    assert float_nodes(graph)["n1"] == BESIDE
    assert "n1" not in float_nodes(b.graph(b.put(Softmax(axis=2), biased), biased))


def test_answers_of_unlike_ranges_are_joined_in_float() -> None:
    """Boxes of hundreds of pixels beside chances: one scale would leave the chances no level."""
    b = Builder((1, 3, 8, 8))
    boxes = b.put(conv(RNG, 3, 4, window()), "x")
    chances = b.put(Unary(function="sigmoid"), b.put(conv(RNG, 3, 2, window()), "x"))
    joined = b.put(Concat(), boxes, chances)
    moved = b.put(Gather(index=np.arange(216, dtype=np.int32).reshape(216)), joined)
    graph = b.graph(b.put(Concat(), moved, moved))
    ranges = dict.fromkeys(graph.shapes, 4.0) | {boxes: 300.0, joined: 300.0}
    wanted = {"n2": BESIDE, "n3": ANSWER, "n4": ANSWER, "n5": ANSWER}
    assert float_nodes(graph, (), ranges) == wanted
    assert float_nodes(graph, (), dict.fromkeys(graph.shapes, 1.0)) == {}
    read = b.graph(b.put(conv(RNG, 6, 2, window()), joined))
    assert float_nodes(read, (), ranges | {read.nodes[-1].output: 1.0}) == {}
    found = quantize_with(graph, ranges)
    data = samples_for(graph, 1)
    (got,), (exact,) = run_integer(found, data).values(), run_float(graph, data).values()
    np.testing.assert_allclose(got[:, 360:], exact[:, 360:], atol=0.03)


def test_operands_are_repeated_in_int8() -> None:
    b = Builder((2, 3, 4))
    row = b.put(Gather(index=np.arange(4, dtype=np.int32).reshape(1, 4)), "x")
    graph = b.graph(b.put(Add(), row, "x"))
    found = quantized(graph)
    repeated = [n for n in found.nodes if isinstance(n.op, QGather)][-1]
    assert found.tensors[repeated.output].shape == (2, 3, 4)
    data = samples_for(graph, 0)
    (wanted,), (exact,) = run_integer(found, data).values(), run_float(graph, data).values()
    np.testing.assert_allclose(wanted, exact, atol=0.1)


def test_layers_that_the_user_names_stay_in_float() -> None:
    b = Builder((1, 3, 8, 8))
    first = b.put(conv(RNG, 3, 4, window(pad=1)), "x")
    pooled = b.put(MaxPool2d(window=window(2, stride=2)), first)
    second = b.put(conv(RNG, 4, 4, window(pad=1)), pooled)
    graph = b.graph(b.put(Concat(), second, pooled))
    assert float_nodes(graph, ["n0"])["n0"] == KEPT
    found = quantized(graph, "n0")
    assert kinds(found)[0] == "Conv2d"
    assert isinstance(found.nodes[1].op, Quantize)
    everything = quantized(graph, "n*")
    assert kinds(everything) == ["Conv2d", "MaxPool2d", "Conv2d", "Concat"]
    data = {name: values[:1] for name, values in samples_for(graph, 1).items()}
    (wanted,), (exact,) = run_integer(everything, data).values(), run_float(graph, data).values()
    np.testing.assert_allclose(wanted, exact, rtol=1e-4, atol=1e-5)
    (got,) = run_network(partition_network(everything, TARGETS["sim"]), data).values()
    np.testing.assert_array_equal(got, wanted)


def test_names_that_nothing_has_are_one_error_with_names_that_are_near() -> None:
    b = Builder((1, 5))
    graph = b.graph(b.put(Unary(function="acosh"), b.put(dense(RNG, 5, 5), "x")))
    with pytest.raises(SettingsError) as refusal:
        float_nodes(graph, ["n01", "zzz*", "n1", "n0"])
    assert refusal.value.what == (
        "--keep-float: no layer is called 'n01'; near: n1, n0; no layer is called 'zzz*';"
        " n1: acosh has no fixed order of float32 operations"
    )
    assert "tilefarm explain" in refusal.value.hint
    assert float_nodes(graph, ["n*"]) == {"n0": KEPT}
