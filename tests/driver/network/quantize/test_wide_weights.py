"""Layers with weights of 16 bits: which may have them, their parameters, what they are worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.networks.random_networks import (
    Builder,
    conv,
    dense,
    networks,
    samples_for,
    transposed,
    window,
)
from tilefarm.errors import SettingsError
from tilefarm.target import TARGETS, Limits, Target

from driver.network.accuracy.noise_sources import noise_sources
from driver.network.graph.ir import Affine, Conv2d, Dense, Graph, MatMul, MaxPool2d, Reshape
from driver.network.integer.qir import MAX_WIDE, QConv2d, QDense, QuantGraph
from driver.network.integer.reference import run_integer
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.float_form import float_form
from driver.network.quantize.floats import KEPT
from driver.network.quantize.integer_bias import fits_int32
from driver.network.quantize.options import AS_USUAL, Quantization
from driver.network.quantize.power_of_two_requantization import (
    MAX_MUL,
    WIDE,
    layer_parameters,
    most_bias,
)
from driver.network.quantize.quantizer import quantize
from driver.network.quantize.wide_weights import wide_nodes
from driver.network.rewrites.fold import fold

ALL_WIDE = Quantization(wide=("*",))


def wide_layers(quantized: QuantGraph) -> dict[str, QConv2d | QDense]:
    return {
        node.name: node.op
        for node in quantized.nodes
        if isinstance(node.op, QConv2d | QDense) and node.op.weight.dtype == np.int16
    }


def one_of_each() -> Graph:
    """n0 a convolution, n1 a depthwise one, n2 scales, n3 a pool, n4 transposed, n6 dense."""
    b, rng = Builder((1, 8, 6, 6)), np.random.default_rng(3)
    t = b.put(conv(rng, 8, 8, window(pad=1)), "x")
    t = b.put(conv(rng, 8, 8, window(pad=1), groups=8), t)
    t = b.put(Affine(weight=np.ones(8, np.float32), bias=np.ones(8, np.float32)), t)
    t = b.put(MaxPool2d(window=window(2, stride=2)), t)
    t = b.put(transposed(rng, 8, 8, (2, 2), (1, 1)), t)
    t = b.put(Reshape(shape=(384,)), t)
    return b.graph(b.put(dense(rng, 384, 5), t))


def test_layers_that_are_named_have_weights_of_16_bits() -> None:
    graph = one_of_each()
    data = samples_for(graph, 0)
    assert [*wide_layers(quantize(graph, data, ALL_WIDE))] == ["n0", "n1", "n6"]
    assert [*wide_layers(quantize(graph, data, Quantization(wide=("n[56]",))))] == ["n6"]
    assert not wide_layers(quantize(graph, data))


def test_names_without_such_weights_are_one_error() -> None:
    b = Builder((1, 4, 8))
    products = b.graph(b.put(MatMul(groups=1, scale=1.0), "x", "x"))
    with pytest.raises(SettingsError) as refusal:
        wide_nodes(one_of_each(), ["n0", "n1", "n2", "n3", "n4", "n9", "n[34]", "n6"], {"n6": KEPT})
    assert refusal.value.what == (
        "--wide-weights: n2: factors of channels have 8 bits only; n3: MaxPool2d has no weights;"
        " n4: a transposed convolution has weights of 8 bits only;"
        " no layer is called 'n9'; n[34]: MaxPool2d has no weights, a transposed convolution has"
        " weights of 8 bits only; n6: stays in float: kept in float by the user"
    )
    assert "tilefarm explain" in refusal.value.hint
    with pytest.raises(SettingsError, match="n0: MatMul has no weights"):
        wide_nodes(products, ["n0"], {})


def test_a_pattern_leaves_out_layers_in_float() -> None:
    graph = one_of_each()
    assert wide_nodes(graph, ["n*"], {"n6": KEPT}) == {"n0", "n1"}
    assert wide_nodes(graph, ["n6*"], {"n6": KEPT}) == frozenset()


def test_a_layer_by_hand() -> None:
    """Gains 0.5 and 0.01 in a block: 0.5 * 2^17 exceeds the range, so the shift of both is 15."""
    weight = np.array([[0.5, -0.25], [0.01, 0.0]], np.float32)
    bias = np.array([1.0, -2.0], np.float32)
    layer = layer_parameters(weight, bias, in_scale=0.1, out_scale=0.1, block=16, bits=WIDE)
    assert layer.shift.tolist() == [15, 15]
    assert layer.weight.tolist() == [[1 << 14, -(1 << 13)], [328, 0]]
    assert layer.bias.tolist() == [(10 << 15) + (1 << 14), -(20 << 15) + (1 << 14)]
    assert layer.weight.dtype == np.int16
    limited = layer_parameters(
        weight, bias, in_scale=0.1, out_scale=0.1, block=16, max_shift=12, bits=WIDE
    )
    assert limited.shift.tolist() == [12, 12]
    assert limited.weight.tolist() == [[1 << 11, -(1 << 10)], [41, 0]]


@pytest.mark.parametrize(("offset", "shift"), [(10.0, 22), (100.0, 19), (500.0, 18)])
def test_a_bias_keeps_within_a_tile_where_bits_are_to_spare(offset: float, shift: int) -> None:
    """The largest of one tile is 256 * 241 998, which is 2^25.9."""
    weight, bias = np.array([[1e-3]], np.float32), np.array([offset], np.float32)
    layer = layer_parameters(weight, bias, in_scale=1.0, out_scale=1.0, block=16, bits=WIDE)
    assert layer.shift.tolist() == [shift]
    assert WIDE.most_bias(16) == 256 * most_bias(16)
    assert WIDE.enough_shift == 18
    assert (layer.bias >> layer.shift).tolist() == [offset]


@given(st.integers(0, 999), st.floats(1e-3, 1e3), st.integers(1, 2000), st.sampled_from([15, 30]))
@settings(max_examples=examples(60), deadline=None)
def test_weights_use_the_range_and_sums_stay_within_int32(
    seed: int, spread: float, terms: int, max_shift: int
) -> None:
    rng = np.random.default_rng(seed)
    weight = (rng.standard_normal((6, terms)) * spread).astype(np.float32)
    out_scale = max(float(np.abs(weight).max()) / MAX_MUL, 1.0)
    bias = (rng.standard_normal(6) * out_scale * 50).astype(np.float32)
    layer = layer_parameters(
        weight, bias, in_scale=1.0, out_scale=out_scale, block=4, max_shift=max_shift, bits=WIDE
    )
    whole = layer.weight.astype(int)
    sums = 128 * np.abs(whole).sum(axis=1) + np.abs(layer.bias.astype(int))
    assert np.abs(whole).max() <= MAX_WIDE
    assert ((layer.shift >= 0) & (layer.shift <= max_shift)).all()
    assert (sums < 2**31).all()
    gains = weight.astype(float) / out_scale
    assert (
        np.abs(whole / np.exp2(layer.shift)[:, None] - gains)
        <= 0.5001 / np.exp2(layer.shift)[:, None]
    ).all()
    for start in (0, 4):
        some = slice(start, start + 4)
        assert len({*layer.shift[some].tolist()}) == 1
        is_full = np.abs(whole[some]).max() > MAX_WIDE // 2
        far = 2 * np.abs(layer.bias[some].astype(int)).max() > WIDE.most_bias(4)
        assert is_full or layer.shift[start] == max_shift or 2 * sums[some].max() >= 2**31 or far


@pytest.mark.parametrize("how", [ALL_WIDE, replace(ALL_WIDE, activations="symmetric")])
def test_weights_add_no_noise(how: Quantization) -> None:
    """What comes of weights is 30 dB below what it was, with biases as they are."""
    graph = one_of_each()
    data = samples_for(graph, 0)
    weights = {}
    for each in (replace(how, wide=(), fit_weights=False), how):
        each = replace(each, correct_bias=False, share_shifts=False)
        quantized = quantize(graph, data, each)
        found = noise_sources(float_form(graph, data, each), quantized, data)
        weights[each.wide] = {
            node.name: found[node.output].sources
            for node in quantized.nodes
            if node.output in found
        }
    for name in ("n0", "n6"):
        before, after = (weights[wide][name] for wide in ((), ("*",)))
        assert before is not None
        assert after is not None
        assert after.weights < before.weights * 1e-3


@settings(max_examples=examples(25), deadline=None)
@given(networks(), st.sampled_from(["sim", "sim-pynq-z1"]))
def test_every_network_can_have_them(case: tuple[Graph, int], target: str) -> None:
    graph = fold(case[0])
    data = samples_for(graph, case[1])
    able = {
        n.name
        for n in graph.nodes
        if isinstance(n.op, Dense) or (isinstance(n.op, Conv2d) and n.op.groups == 1)
    }
    quantized = quantize_for(TARGETS[target], graph, data, Quantization(wide=tuple(able)))
    layers = wide_layers(quantized)
    assert layers.keys() == able
    for op in layers.values():
        assert op.factor is None
        assert np.abs(op.weight.astype(int)).max(initial=0) <= MAX_WIDE
        assert op.shift.max() <= TARGETS[target].limits.max_shift
        assert fits_int32(op)
    assert all(np.isfinite(values).all() for values in run_integer(quantized, data).values())


def test_with_mul_they_are_shifted_all_the_same() -> None:
    graph = one_of_each()
    data = samples_for(graph, 0)
    target = Target(name="mul", limits=Limits(alu_mul=True))
    how = Quantization(requantize="mul", wide=("n0",))
    layers = {n.name: n.op for n in quantize_for(target, graph, data, how).nodes}
    wide, usual = layers["n0"], layers["n6"]
    assert isinstance(wide, QConv2d)
    assert isinstance(usual, QDense)
    assert wide.factor is None
    assert wide.weight.dtype == np.int16
    assert usual.factor is not None


def test_biases_are_corrected_and_weights_are_left_alone() -> None:
    graph = one_of_each()
    data = samples_for(graph, 0)
    plain = wide_layers(quantize(graph, data, replace(ALL_WIDE, correct_bias=False)))
    better = wide_layers(quantize(graph, data, replace(ALL_WIDE, share_shifts=True)))
    assert any(not np.array_equal(plain[name].bias, better[name].bias) for name in plain)
    for name, op in plain.items():
        assert np.array_equal(op.weight, better[name].weight)
        assert np.array_equal(op.shift, better[name].shift)


def test_nothing_changes_without_them() -> None:
    graph = one_of_each()
    data = samples_for(graph, 0)
    some = quantize(graph, data, Quantization(wide=("n6",)))
    usual = quantize(graph, data, AS_USUAL)
    for one, other in zip(some.nodes[:-2], usual.nodes[:-2], strict=True):
        if isinstance(one.op, QConv2d) and isinstance(other.op, QConv2d):
            assert np.array_equal(one.op.weight, other.op.weight)
            assert np.array_equal(one.op.bias, other.op.bias)
