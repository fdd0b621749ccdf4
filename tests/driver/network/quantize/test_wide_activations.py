"""Results of 16 bits: which layers may have them, how many bits, what they are worth."""

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
    layer_chains,
    networks,
    samples_for,
    window,
)
from kit.networks.wide import all_wide
from tilefarm.dtype import DType
from tilefarm.errors import SettingsError
from tilefarm.target import TARGETS, Limits, Target

from driver.network.accuracy.noise_sources import noise_sources
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Clip, Dense, Graph, MaxPool2d, Reshape
from driver.network.integer.noise import noise_between
from driver.network.integer.qir import MAX_WIDE, QConv2d, QDense, QReshape, QuantGraph
from driver.network.integer.reference import run_integer
from driver.network.quantize.fitting import quantize_for
from driver.network.quantize.float_form import float_form
from driver.network.quantize.floats import KEPT
from driver.network.quantize.integer_bias import fits_int32
from driver.network.quantize.options import AS_USUAL, Activations, Quantization
from driver.network.quantize.power_of_two_requantization import (
    INT8,
    LargestMagnitudes,
    bounds,
    layer_parameters,
)
from driver.network.quantize.quantizer import quantize
from driver.network.quantize.wide_activations import (
    largest_results,
    wide_result_reasons,
    wide_results,
    with_spare,
)
from driver.network.rewrites.fold import fold

ALL_WIDE = Quantization(wide_activations=("*",))
ABLE = ["n0", "n1", "n4", "n6"]


def mixed(hi: float = np.inf) -> Graph:
    """n0 a convolution, n1 a depthwise one, n2 before the pool n3, n4 before dense n6, n7."""
    rng = np.random.default_rng(3)
    b = Builder((1, 8, 6, 6))
    t = b.put(replace(conv(rng, 8, 8, window(pad=1)), lo=0.0, hi=hi), "x")
    t = b.put(conv(rng, 8, 8, window(pad=1), groups=8), t)
    t = b.put(conv(rng, 8, 8, window(1)), t)
    t = b.put(MaxPool2d(window=window(2, stride=2)), t)
    t = b.put(conv(rng, 8, 8, window(1)), t)
    t = b.put(Reshape(shape=(72,)), t)
    t = b.put(dense(rng, 72, 5), t)
    return b.graph(b.put(dense(rng, 5, 5), t))


def wide_tensors(quantized: QuantGraph) -> dict[str, int]:
    return {
        node.name: quantized.tensors[node.output].largest
        for node in quantized.nodes
        if quantized.tensors[node.output].dtype is DType.INT16 and not isinstance(node.op, QReshape)
    }


def test_layers_that_are_named_have_results_of_16_bits() -> None:
    graph = mixed()
    data = samples_for(graph, 0)
    assert [*wide_tensors(quantize(graph, data, ALL_WIDE))] == ABLE
    one = quantize(graph, data, Quantization(wide_activations=("n[12]",)))
    assert [*wide_tensors(one)] == ["n1"]
    assert not wide_tensors(quantize(graph, data))


def test_a_reshape_passes_them_on() -> None:
    quantized = quantize(mixed(), samples_for(mixed(), 0), ALL_WIDE)
    assert quantized.tensors["t5"] == replace(quantized.tensors["t4"], shape=(1, 72))


def test_names_without_such_results_are_one_error() -> None:
    with pytest.raises(SettingsError) as refusal:
        wide_results(mixed(), ["n0", "n2", "n3", "n7", "n9", "n[23]", "n6"], {"n6": KEPT})
    assert refusal.value.what == (
        "--wide-activations: n2: n3 (MaxPool2d), which reads its result, takes 8 bits;"
        " n3: MaxPool2d makes 8 bits only; n7: its result is an output of the network;"
        " no layer is called 'n9'; n[23]: n3 (MaxPool2d), which reads its result, takes 8 bits,"
        " MaxPool2d makes 8 bits only; n6: stays in float: kept in float by the user"
    )
    assert "tilefarm explain" in refusal.value.hint


def test_reasons_of_other_places() -> None:
    rng = np.random.default_rng(0)
    b = Builder((1, 4, 2, 2))
    t = b.put(conv(rng, 4, 4, window(1)), "x")
    flat = b.put(Reshape(shape=(16,)), t)
    square = b.put(Reshape(shape=(4, 2, 2)), flat)
    last = b.put(conv(rng, 4, 4, window(1)), square)
    unread = b.put(conv(rng, 4, 4, window(1)), t)
    crowd = b.put(Dense(weight=np.ones((1, 16), np.float32), bias=np.zeros(1, np.float32)), flat)
    del unread
    found = wide_result_reasons(b.graph(last, crowd))
    assert found["n0"] == "n1 (Reshape), which reads its result, takes 8 bits"
    assert found["n4"] == "nothing reads its result"


def test_a_reader_whose_sums_are_full() -> None:
    """66,572 products of 127 and 127 are more than the half of int32 that is not for the bias."""
    rng = np.random.default_rng(0)
    for terms, reason in ((66_000, ""), (67_000, "n1, which reads its result, has no room")):
        b = Builder((1, 2))
        t = b.put(dense(rng, 2, terms), "x")
        ones = np.ones((1, terms), np.float32)
        b.put(Dense(weight=ones, bias=np.zeros(1, np.float32)), t)
        assert wide_result_reasons(b.graph("t1"))["n0"].startswith(reason)
        assert bool(wide_result_reasons(b.graph("t1"))["n0"]) == bool(reason)


@pytest.mark.parametrize(
    ("max_shift", "wide", "most"),
    [(30, False, (1 << 30) // (127 * 1000)), (30, True, 1036), (15, False, 2047), (15, True, 1036)],
)
def test_bits_follow_from_the_sums_of_readers(max_shift: int, wide: bool, most: int) -> None:
    """1000 weights of one size; sums of wide ones leave sqrt(2^30 / 1000) to both."""
    b = Builder((1, 2))
    t = b.put(dense(np.random.default_rng(0), 2, 1000), "x")
    same = Dense(weight=np.full((3, 1000), 0.25, np.float32), bias=np.zeros(3, np.float32))
    graph = b.graph(b.put(same, t))
    found = largest_results(graph, {"n0"}, {"n1"} if wide else (), max_shift)
    assert found == {"t0": most}


def test_no_more_bits_than_planes_hold() -> None:
    graph = mixed()
    found = largest_results(graph, {"n0"}, (), 30)
    assert found == {"t0": MAX_WIDE}


def test_patterns_leave_out_layers_beside_those_in_float() -> None:
    """A layer in float reads 8 bits, and one that is in float has float32."""
    graph = mixed()
    for wide in (("*",), ("n0", "n4", "n6")):
        how = Quantization(wide_activations=wide).with_float(["n1", "n6"])
        quantized = quantize(graph, samples_for(graph, 0), how)
        assert not wide_tensors(quantized)
    how = Quantization(wide_activations=("n0", "n1")).with_float(["n1"])
    assert how == Quantization(keep_float=("n1",), wide_activations=("n0",))


def test_rounding_adds_no_noise_and_clipping_is_told_from_it() -> None:
    graph = mixed()
    data = samples_for(graph, 0)
    usual, wide, cut = (
        noise_sources(float_form(graph, data, how), quantize(graph, data, how), data)
        for how in (AS_USUAL, ALL_WIDE, replace(ALL_WIDE, calibration="percentile:50"))
    )
    for name in ABLE:
        before, after = (each[f"t{name[1:]}"].sources for each in (usual, wide))
        assert before is not None
        assert after is not None
        assert after.rounding < before.rounding / 1000
        assert after.clipping == 0
    first = cut["t0"].sources
    assert first is not None
    assert first.clipping > 100 * first.rounding


@pytest.mark.parametrize("activations", ["symmetric", "mixed", "asymmetric"])
def test_they_have_no_middle(activations: Activations) -> None:
    graph = mixed()
    how = replace(ALL_WIDE, activations=activations)
    quantized = quantize(graph, samples_for(graph, 0), how)
    assert [*wide_tensors(quantized)] == ABLE
    assert all(not quantized.tensors[f"t{name[1:]}"].middle for name in ABLE)


def test_a_result_of_8_bits_for_a_float_reader_may_have_a_middle() -> None:
    """n0 is named, and read by n1 in float: it is centered like any other, and has a border."""
    graph = mixed(hi=6.0)
    data = samples_for(graph, 0)
    how = Quantization(
        activations="asymmetric", wide_activations=("n0", "n1"), keep_float=("n1",)
    ).with_float(["n1"])
    quantized = quantize(graph, data, how)
    assert wide_tensors(quantized) == {}
    assert not np.isnan(run_integer(quantized, data)["out0"]).any()


def test_networks_are_better_by_them() -> None:
    """With weights of 16 bits too, all that is left is the rounding at the ends."""
    rng = np.random.default_rng(1)
    b = Builder((1, 8, 6, 6))
    t = "x"
    for step in range(6):
        t = b.put(conv(rng, 8, 8, window(pad=1), groups=8 if step % 2 else 1), t)
    graph = b.graph(t)
    data = samples_for(graph, 0)
    floats = run_float(graph, data)["out0"]

    def ratio_db(how: Quantization) -> float:
        return noise_between(floats, run_integer(quantize(graph, data, how), data)["out0"]).ratio_db

    usual, wide = ratio_db(Quantization(wide=())), ratio_db(all_wide(graph, weights=False))
    both = ratio_db(all_wide(graph, weights=True))
    assert wide > usual + 1
    assert both > wide + 0.5


def test_with_mul_they_are_shifted_all_the_same() -> None:
    graph = mixed()
    data = samples_for(graph, 0)
    target = Target(name="mul", limits=Limits(alu_mul=True))
    how = Quantization(requantize="mul", wide_activations=("n0",))
    layers = {n.name: n.op for n in quantize_for(target, graph, data, how).nodes}
    for name, is_multiplied in (("n0", False), ("n1", False), ("n2", True)):
        op = layers[name]
        assert isinstance(op, QConv2d)
        assert (op.factor is not None) == is_multiplied


@settings(max_examples=examples(30), deadline=None)
@given(
    st.one_of(layer_chains(), networks()), st.sampled_from(["sim", "sim-pynq-z1"]), st.booleans()
)
def test_every_network_can_have_them(case: tuple[Graph, int], target: str, weights: bool) -> None:
    graph = fold(case[0])
    data = samples_for(graph, case[1])
    how = all_wide(graph, weights=weights)
    quantized = quantize_for(TARGETS[target], graph, data, how)
    assert {*wide_tensors(quantized)} <= {*(how.wide_activations or ())}
    for node in quantized.nodes:
        source, result = (quantized.tensors[name] for name in (node.inputs[0], node.output))
        wide = [t for t in (source, result) if t.dtype is DType.INT16]
        if wide and not isinstance(node.op, QReshape):
            assert isinstance(node.op, QConv2d | QDense)
            assert node.op.factor is None
            assert fits_int32(node.op, source.largest)
            assert node.op.shift.max() <= TARGETS[target].limits.max_shift
        assert all(127 < t.largest <= MAX_WIDE for t in wide)
    values = run_integer(quantized, data, keep=True)
    for name, tensor in quantized.tensors.items():
        assert values[name].dtype == tensor.dtype.value
        if tensor.dtype is DType.INT16:
            assert np.abs(values[name].astype(int)).max() <= tensor.largest


def test_nothing_changes_without_them() -> None:
    graph = mixed()
    data = samples_for(graph, 0)
    some = quantize(graph, data, Quantization(wide_activations=("n6",)))
    usual = quantize(graph, data, AS_USUAL)
    for one, other in zip(some.nodes[:-3], usual.nodes[:-3], strict=True):
        if isinstance(one.op, QConv2d) and isinstance(other.op, QConv2d):
            assert np.array_equal(one.op.weight, other.op.weight)
            assert np.array_equal(one.op.bias, other.op.bias)
            assert one.op.hi == other.op.hi


def test_a_layer_by_hand() -> None:
    """Operands to 2047, results to 32,639: a gain of 4 has the shift 4, and 0.5 its own."""
    weight = np.array([[4.0, -2.0], [0.5, 0.0]], np.float32)
    bias = np.array([10.0, -2.0], np.float32)
    largest = LargestMagnitudes(operand=2047, result=MAX_WIDE)
    layer = layer_parameters(weight, bias, in_scale=1.0, out_scale=1.0, block=16, largest=largest)
    assert layer.shift.tolist() == [4, 7]
    assert layer.weight.tolist() == [[64, -32], [64, 0]]
    assert layer.bias.tolist() == [160 + 8, -256 + 64]
    assert bounds(0.0, np.inf, 0.5, 2047) == (0, 2047)
    assert bounds(-np.inf, 6.0, 0.01, 2047) == (-2047, 600)
    assert bounds(-np.inf, 6.0, 0.01, INT8.result) == (-128, 127)


@pytest.mark.parametrize(("operand", "shift"), [(128, 10), (129, 11), (2047, 14), (32639, 15)])
def test_a_bias_keeps_within_its_tiles_where_bits_are_to_spare(operand: int, shift: int) -> None:
    """Wide operands have biases in two planes, and want finer weights."""
    far = 300.0 if operand == 128 else 60_000.0
    weight, bias = np.array([[1e-3]], np.float32), np.array([far], np.float32)
    largest = LargestMagnitudes(operand=operand, result=MAX_WIDE)
    layer = layer_parameters(weight, bias, in_scale=1.0, out_scale=1.0, block=16, largest=largest)
    assert layer.shift.tolist() == [shift]


def test_ranges_have_room_for_more_than_the_data_unless_the_layer_clips() -> None:
    graph = mixed()
    ranges = dict.fromkeys(graph.shapes, 3.0)
    found = with_spare(graph, ranges, {"t0", "t1"})
    assert found == {**ranges, "t0": 6.0, "t1": 6.0}
    assert with_spare(mixed(hi=4.0), ranges, {"t0"})["t0"] == 4.0


def test_folded_clips_are_bounds() -> None:
    """ReLU6 behind a convolution is its own clip, so the result may have 16 bits."""
    rng = np.random.default_rng(0)
    b = Builder((1, 4, 3, 3))
    t = b.put(conv(rng, 4, 4, window(1)), "x")
    t = b.put(Clip(lo=0.0, hi=1.0), t)
    graph = fold(b.graph(b.put(conv(rng, 4, 4, window(1)), t)))
    quantized = quantize(graph, samples_for(graph, 0), ALL_WIDE)
    (name,) = wide_tensors(quantized)
    (op,) = (node.op for node in quantized.nodes if node.name == name)
    assert isinstance(op, QConv2d)
    assert op.lo == 0
    assert op.hi > 127
