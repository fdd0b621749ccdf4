"""Weights and tensors of 16 bits in planes of int8: packed, and as calls with the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.networks.random_networks import (
    Builder,
    conv,
    dense,
    layer_chains,
    networks,
    samples_for,
    window,
)
from kit.networks.simulated import PAIRS
from kit.networks.wide import all_wide
from tilefarm.target import TARGETS, Target, VtaConfig

from driver.network.graph.ir import Graph, Reshape
from driver.network.integer.network import Network, NetworkStep
from driver.network.integer.qir import MAX_WIDE
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.layers import MULTIPLIES
from driver.network.partition.pack import (
    bias_planes,
    in_planes,
    packed_conv_weight,
    packed_dense_weight,
    unit_rows,
)
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.options import Quantization
from driver.network.rewrites.fold import fold
from driver.program.evaluate import differing_samples

SIM = TARGETS["sim"]
JOINS = "weights of 16 bits: GEMM with high and low bytes, ALU joins the sums"
NARROW = Target(name="narrow", vta=VtaConfig(log_batch=1, log_block=2))
ENDS = [-MAX_WIDE, -32513, -32512, -129, -128, -1, 0, 127, 128, 255, 32511, 32512, MAX_WIDE]


def test_the_ends_of_the_range_are_high_and_low() -> None:
    weight = np.array(ENDS, np.int16).reshape(-1, 1, 1, 1)
    planes = in_planes(weight, lambda each: packed_conv_weight(each, SIM)).astype(int)
    assert planes.shape == (1, 2, 1, 1, 1, 16, 16)
    high, low = planes[0, :, 0, 0, 0, : len(ENDS), 0]
    assert (256 * high + low).tolist() == ENDS
    assert high.min() == -127
    assert high.max() == 127
    assert low.min() == -128
    assert low.max() == 127


@given(st.integers(0, 99))
def test_planes_are_packed_like_weights_of_8_bits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weight = rng.integers(-MAX_WIDE, MAX_WIDE + 1, (20, 36), dtype=np.int16)
    planes = in_planes(weight, lambda each: packed_dense_weight(each, SIM, (9, 2, 2)))
    small = rng.integers(-127, 128, (20, 36), dtype=np.int8)
    assert planes.shape == (2, 2, 4, 16, 16)
    assert planes.dtype == np.int8
    joined = 256 * planes[:, 0].astype(int) + planes[:, 1]
    as_usual = in_planes(small, lambda each: packed_dense_weight(each, SIM, (9, 2, 2)))
    assert as_usual.shape == joined.shape
    assert np.sort(joined[joined != 0]).tolist() == np.sort(weight[weight != 0]).tolist()
    one = np.where(weight == weight[3, 5], 1, 0).astype(np.int8)
    (places,) = np.nonzero(packed_dense_weight(one, SIM, (9, 2, 2)).reshape(-1))
    assert (joined.reshape(-1)[places] == weight[3, 5]).all()


@pytest.mark.parametrize("target", [SIM, NARROW], ids=lambda target: target.name)
@pytest.mark.parametrize(
    "biases",
    [
        [0],
        [5, -128, 127, 128, -129],
        [256 * (127 * 127 * 15 + 63), -256 * (127 * 127 * 15 + 63)],
        [2**31 - 1, -(2**31), 1, 0, -1, 2**24],
    ],
)
def test_biases_are_sums_of_both_planes(biases: list[int], target: Target) -> None:
    values = np.array(biases, np.int32)
    tiles = bias_planes(values, target)
    unit = unit_rows(target).astype(np.int64)
    planes = np.einsum("bi,kptoi->pkbo", unit, tiles.astype(np.int64))
    joined = 256 * planes[0] + planes[1]
    lanes = joined.transpose(1, 0, 2).reshape(target.lanes.batch, -1)
    assert tiles.dtype == np.int8
    assert (lanes[:, : len(biases)] == values).all()
    assert not lanes[:, len(biases) :].any()


def test_a_bias_of_one_tile_has_one() -> None:
    most = 256 * (127 * 127 * 15 + 63)
    assert bias_planes(np.array([most, -most], np.int32), SIM).shape == (1, 2, 1, 16, 16)
    assert bias_planes(np.array([most + most // 2], np.int32), SIM).shape == (1, 2, 2, 16, 16)


def three_layers(batch: int = 1) -> Graph:
    """n0 reads windows of an image, n1 blocks of channels, n3 flattened ones."""
    rng = np.random.default_rng(1)
    b = Builder((batch, 3, 5, 5))
    t = b.put(conv(rng, 3, 20, window(pad=1)), "x")
    t = b.put(conv(rng, 20, 9, window(stride=2)), t)
    t = b.put(Reshape(shape=(36,)), t)
    return b.graph(b.put(dense(rng, 36, 5), t))


def network_of(graph: Graph, target: Target, *wide: str) -> Network:
    how = Quantization(wide=wide)
    return partition_network(quantize_for(target, graph, samples_for(graph, 2), how), target)


def layers_of(network: Network) -> dict[str, NetworkStep]:
    return {step.name: step for step in network.steps if step.macs}


def test_calls_of_a_network() -> None:
    usual, wide = (layers_of(network_of(three_layers(), SIM, *w)) for w in ((), ("n0", "n3")))
    assert [step.macs for step in usual.values()] == [step.macs for step in wide.values()]
    assert [step.workload.planes for step in wide.values()] == [2, 1, 2]
    assert [step.why for step in wide.values()] == [JOINS, MULTIPLIES, JOINS]
    assert all(step.place == "accelerator" for step in wide.values())
    assert all("planes" not in dict(step.workload.attrs) for step in usual.values())
    shapes = {
        name: {spec.name: spec.shape for spec in step.workload.inputs}
        for name, step in wide.items()
    }
    assert shapes["n0"]["weight"] == (2, 2, 2, 1, 1, 16, 16), "27 channels of one pixel"
    assert shapes["n0"]["bias"] == (2, 2, 1, 16, 16)
    assert shapes["n0"]["shift"] == (2,)
    assert shapes["n1"]["weight"] == (1, 2, 3, 3, 16, 16)
    assert shapes["n3"]["weight"] == (1, 2, 4, 16, 16)
    assert {*shapes["n3"]} == {"data", "weight", "bias", "unit", "shift"}


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    "target", [SIM, TARGETS["sim-pynq-z1"], PAIRS], ids=lambda target: target.name
)
def test_calls_give_the_references_bits(target: Target, batch: int) -> None:
    graph = three_layers(batch)
    data = samples_for(graph, 3)
    quantized = quantize_for(target, graph, data, Quantization(wide=("*",)))
    some = {name: values[:batch] for name, values in data.items()}
    answers = run_network(partition_network(quantized, target), some)
    assert differing_samples(answers, run_integer(quantized, some)) == 0


def chain(batch: int = 1) -> Graph:
    """n0 an image's windows, n1 depthwise, n2 and n3 in groups and not, n5 flattened, n6."""
    rng = np.random.default_rng(1)
    b = Builder((batch, 3, 5, 5))
    t = b.put(conv(rng, 3, 20, window(pad=1)), "x")
    t = b.put(conv(rng, 20, 20, window(pad=1), groups=20), t)
    t = b.put(conv(rng, 20, 40, window(stride=2), groups=2), t)
    t = b.put(conv(rng, 40, 9, window(1)), t)
    t = b.put(Reshape(shape=(36,)), t)
    t = b.put(dense(rng, 36, 20), t)
    return b.graph(b.put(dense(rng, 20, 5), t))


def test_calls_with_tensors_of_16_bits() -> None:
    graph = chain()
    how = Quantization(wide=("n3",), wide_activations=("*",))
    network = partition_network(quantize_for(SIM, graph, samples_for(graph, 2), how), SIM)
    layers = layers_of(network)
    planes = {
        name: {k: v for k, v in step.workload.attrs if "planes" in k}
        for name, step in layers.items()
    }
    inner = {"data_planes": 2, "out_planes": 2}
    assert planes == {
        "n0": {"out_planes": 2},
        "n1": inner,
        "n2": inner,
        "n3": {**inner, "planes": 2},
        "n5": inner,
        "n6": {"data_planes": 2},
    }
    shapes = {
        name: {spec.name: spec.shape for spec in (*step.workload.inputs, *step.workload.outputs)}
        for name, step in layers.items()
    }
    assert shapes["n0"]["data"] == (1, 2, 5, 5, 1, 16), "27 channels of one pixel"
    assert shapes["n0"]["out"] == shapes["n1"]["data"] == (1, 2, 2, 5, 5, 1, 16)
    assert shapes["n0"]["bias"] == (2, 1, 16, 16), "one plane of sums has one of biases"
    assert shapes["n1"]["bias"] == (2, 2, 1, 16, 16)
    assert shapes["n3"]["weight"] == (1, 2, 3, 1, 1, 16, 16)
    assert shapes["n3"]["bias"] == (1, 2, 1, 16, 16), "three planes of sums have two of biases"
    assert shapes["n3"]["out"] == (1, 2, 1, 2, 2, 1, 16)
    assert shapes["n5"]["data"] == (1, 2, 4, 1, 16), "the same bytes, flattened"
    assert shapes["n6"]["data"] == (1, 2, 2, 1, 16)
    assert shapes["n6"]["out"] == (1, 1, 1, 16)
    assert all(step.place == "accelerator" for step in layers.values())
    assert layers["n0"].why == f"{MULTIPLIES}; makes 16 bits"
    assert layers["n6"].why == f"data {JOINS.removeprefix('weights ')}"
    assert layers["n1"].why.startswith("data of 16 bits: GEMM")
    assert layers["n3"].why.startswith("data and weights of 16 bits: GEMM")


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    "target", [SIM, TARGETS["sim-pynq-z1"], PAIRS], ids=lambda target: target.name
)
@pytest.mark.parametrize("weights", [(), ("*",)], ids=["int8", "wide"])
def test_calls_on_tensors_of_16_bits_give_the_references_bits(
    target: Target, batch: int, weights: tuple[str, ...]
) -> None:
    graph = chain(batch)
    data = samples_for(graph, 3)
    how = Quantization(wide=weights, wide_activations=("*",))
    quantized = quantize_for(target, graph, data, how)
    some = {name: values[:batch] for name, values in data.items()}
    answers = run_network(partition_network(quantized, target), some)
    assert differing_samples(answers, run_integer(quantized, some)) == 0


@settings(max_examples=examples(25), deadline=None)
@given(case=st.one_of(networks(), layer_chains()), weights=st.booleans())
def test_any_network_gives_the_references_bits(case: tuple[Graph, int], weights: bool) -> None:
    graph, seed = fold(case[0]), case[1]
    data = samples_for(graph, seed)
    quantized = quantize_for(SIM, graph, data, all_wide(graph, weights=weights))
    some = {name: values[: quantized.batch] for name, values in data.items()}
    answers = run_network(partition_network(quantized, SIM), some)
    assert differing_samples(answers, run_integer(quantized, some)) == 0
