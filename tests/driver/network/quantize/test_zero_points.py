"""What a ReLU makes is stored around its middle where its readers can make up for that."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
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
from numpy.typing import NDArray
from tilefarm.target import TARGETS

from driver.network.graph.float_run import run_float
from driver.network.graph.grid import Grid
from driver.network.graph.ir import (
    Add,
    Affine,
    Conv2d,
    FloatArray,
    Graph,
    MaxPool2d,
    Operator,
    Reshape,
    Softmax,
)
from driver.network.integer.noise import noise_between
from driver.network.integer.qir import QGather
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.float_form import float_form
from driver.network.quantize.input_zero_points import input_zero_points
from driver.network.quantize.options import Quantization
from driver.network.quantize.quantizer import quantize
from driver.network.quantize.ranges import ranges_of
from driver.network.quantize.zero_points import ZeroPoint, copied_tensors, middles

SYMMETRIC = Quantization(activations="symmetric")
ASYMMETRIC = Quantization(activations="asymmetric")


@settings(max_examples=examples(25), deadline=None)
@given(networks())
def test_results_stay_to_rounding(case: tuple[Graph, int]) -> None:
    graph, seed = case
    data = samples_for(graph, seed)
    before, after = run_float(graph, data), run_float(float_form(graph, data, ASYMMETRIC), data)
    for name, values in before.items():
        assert np.abs(after[name] - values).max() <= 1e-4 * max(1.0, np.abs(values).max())


def stack(*, hi: float = math.inf, seed: int = 2) -> Graph:
    """Convolution, pointwise convolution and dense layer with ReLUs between them."""
    rng = np.random.default_rng(seed)
    b = Builder((1, 3, 5, 5))
    name = b.put(replace(conv(rng, 3, 16, window(pad=1)), lo=0.0, hi=hi), "x")
    name = b.put(replace(conv(rng, 16, 16, window(1)), lo=0.0), name)
    name = b.put(Reshape(shape=(400,)), name)
    name = b.put(replace(dense(rng, 400, 32), lo=0.0), name)
    return b.graph(b.put(dense(rng, 32, 6), name))


def data_for(graph: Graph, samples: int, seed: int) -> dict[str, FloatArray]:
    shape = (samples, *graph.inputs[0].shape[1:])
    return {"x": np.random.default_rng(seed).standard_normal(shape).astype(np.float32)}


@pytest.mark.parametrize("hi", [math.inf, 1.0])
def test_tensors_span_their_whole_int8(hi: float) -> None:
    graph = stack(hi=hi)
    data = data_for(graph, 50, 0)
    values = run_integer(quantize(graph, data, ASYMMETRIC), data, keep=True)
    for name in ("t0", "t1", "t3"):
        assert values[name].min() == -127
        assert values[name].max() >= 124
    symmetric = run_integer(quantize(graph, data, SYMMETRIC), data, keep=True)
    assert symmetric["t0"].min() == 0


def test_the_noise_is_less() -> None:
    ratios = []
    for how in (SYMMETRIC, ASYMMETRIC):
        noise = 0.0
        for seed in range(5):
            graph = stack(seed=seed)
            data, others = data_for(graph, 50, 0), data_for(graph, 100, 1)
            floats = run_float(graph, others)["out0"]
            integers = run_integer(quantize(graph, data, how), others)["out0"]
            noise += noise_between(floats, integers).ratio_db
        ratios.append(noise / 5)
    assert ratios[1] > ratios[0] + 0.7


def test_a_zero_is_exactly_zero_for_the_layer_that_reads_it() -> None:
    """The middle meets the weights as they are rounded, so a silent tensor adds nothing."""
    rng = np.random.default_rng(0)
    b = Builder((1, 40))
    first = dense(rng, 40, 64)
    name = b.put(replace(first, weight=np.abs(first.weight), lo=0.0), "x")
    last = dense(rng, 64, 8)
    graph = b.graph(b.put(replace(last, bias=np.zeros(8, np.float32)), name))
    data = rng.uniform(-1, 1, (100, 40)).astype(np.float32)
    quantized = quantize(graph, data, replace(ASYMMETRIC, correct_bias=False))
    silence = {"x": np.full((1, 40), -1, np.float32)}
    assert run_integer(quantized, silence, keep=True)["t0"].max() == -127
    assert not run_integer(quantized, silence)["out0"].any()


def test_a_middle_is_half_the_range_and_goes_through_reshapes() -> None:
    graph = stack()
    ranges = ranges_of(graph, data_for(graph, 20, 0))
    halves = {"t0": "t0", "t1": "t1", "t2": "t1", "t3": "t3"}
    assert middles(graph, ranges) == {
        name: ZeroPoint(real=ranges[of] / 2, reach=ranges[of] / 2) for name, of in halves.items()
    }


@pytest.mark.parametrize(
    "reader",
    [
        transposed(np.random.default_rng(1), 16, 4, (2, 2), (1, 1)),
        MaxPool2d(window=window(2)),
        Affine(weight=np.ones(16, np.float32), bias=np.ones(16, np.float32)),
    ],
)
def test_a_tensor_that_anything_else_reads_stays(reader: Operator) -> None:
    rng = np.random.default_rng(2)
    b = Builder((1, 3, 5, 5))
    name = b.put(replace(conv(rng, 3, 16, window(pad=1)), lo=0.0), "x")
    graph = b.graph(b.put(reader, name), b.put(conv(rng, 16, 2, window(1)), name))
    ranges = ranges_of(graph, data_for(graph, 4, 0))
    assert bool(middles(graph, ranges)) == isinstance(reader, Affine)
    assert not middles(b.graph(name), ranges)


def test_a_weight_that_stands_for_infinity_meets_no_middle() -> None:
    """The mask of an attention: the middle times it leaves float32, and all is NaN."""
    b = Builder((1, 3, 5, 5))
    name = b.put(replace(conv(np.random.default_rng(2), 3, 16, window()), lo=0.0), "x")
    infinite = np.full(16, np.finfo(np.float32).min)
    graph = b.graph(b.put(Affine(weight=infinite, bias=np.zeros(16, np.float32)), name))
    assert not middles(graph, dict.fromkeys(graph.shapes, 1.0))


def padded_stack(lo: float, hi: float, seed: int = 2) -> Graph:
    """Two convolutions that pad what a clipped one made, alike and otherwise; a dense layer."""
    rng = np.random.default_rng(seed)
    b = Builder((1, 3, 5, 5))
    name = b.put(replace(conv(rng, 3, 16, window()), lo=lo, hi=hi), "x")
    around = window(pad=1)
    first = b.put(conv(rng, 16, 16, around, groups=16), name)
    second = b.put(conv(rng, 16, 16, around), name)
    third = b.put(conv(rng, 16, 16, replace(around, pad=(0, 1, 1, 0))), name)
    last = b.put(Reshape(shape=(144,)), b.put(Add(), first, second))
    return b.graph(b.put(dense(rng, 144, 6), last), third)


def test_convolutions_that_pad_read_a_border_whose_zeros_are_zero() -> None:
    graph = padded_stack(0.0, math.inf)
    data = data_for(graph, 50, 0)
    quantized = quantize(graph, data, ASYMMETRIC)
    borders = [node for node in quantized.nodes if isinstance(node.op, QGather)]
    assert [node.op.fill for node in borders if isinstance(node.op, QGather)] == [-127, -127]
    values = run_integer(quantized, data, keep=True)
    assert values["t0"].min() == -127
    assert values[borders[0].output].shape[1:] == (16, 5, 5)
    assert (values[borders[0].output][:, :, 0] == -127).all()
    network = partition_network(quantized, TARGETS["sim"])
    (first, _) = [step for step in network.steps if step.workload.operator == "gather"]
    assert (first.place, first.workload.fill) == ("cpu", -127)
    one = {"x": data["x"][:1]}
    for name, expected in run_integer(quantized, one).items():
        assert run_network(network, one)[name].tobytes() == expected.tobytes()


def test_a_padded_zero_adds_exactly_nothing() -> None:
    """A silent tensor and the zeros around it are the same to the layer that reads them."""
    rng = np.random.default_rng(0)
    b = Builder((1, 3, 5, 5))
    first = conv(rng, 3, 16, window())
    name = b.put(replace(first, weight=np.abs(first.weight), lo=0.0), "x")
    last = conv(rng, 16, 16, window(pad=1), groups=16)
    graph = b.graph(b.put(replace(last, bias=np.zeros(16, np.float32)), name))
    data = rng.uniform(-1, 1, (100, 3, 5, 5)).astype(np.float32)
    quantized = quantize(graph, data, replace(ASYMMETRIC, correct_bias=False))
    silence = {"x": np.full((1, 3, 5, 5), -1, np.float32)}
    assert not run_integer(quantized, silence)["out0"].any()


@pytest.mark.parametrize(
    ("zero", "byte"), [(0, -128), (200, 72), (128, 0)], ids=["relu", "lopsided", "even"]
)
def test_the_bytes_of_a_model_that_was_quantized_before_are_kept(zero: int, byte: int) -> None:
    """uint8 with a zero point becomes int8, 128 less; no data are needed."""
    step = 0.02
    lo, hi = -zero * step, (255 - zero) * step
    graph = padded_stack(lo, hi)
    grid = Grid(step, zero, "uint8")
    ranges = dict.fromkeys(graph.shapes, 4.0) | {"t0": grid.reach}
    graph = replace(graph, ranges=ranges)
    data = data_for(graph, 50, 0)
    quantized = quantize(graph, None, ASYMMETRIC)
    assert quantized.tensors["t0"].scale == pytest.approx(step)
    assert quantized.tensors["t0"].middle == pytest.approx((128 - zero) * step)
    fills = [node.op.fill for node in quantized.nodes if isinstance(node.op, QGather)]
    assert fills == ([byte, byte] if byte else [])
    seen: dict[str, FloatArray] = {}
    run_float(graph, data, observe=lambda name, values: seen.update({name: values}))
    stored = run_integer(quantized, data, keep=True)["t0"]
    wanted = grid.integers(seen["t0"]).astype(np.int64) - 128
    assert np.abs(stored - wanted).max() <= 3


def test_mixed_takes_no_middles_that_need_a_copy() -> None:
    """Layers that pad a tensor differently cannot all find it in a border of theirs."""
    padded, plain = padded_stack(0.0, math.inf), stack()
    ranges = [ranges_of(graph, data_for(graph, 4, 0)) for graph in (padded, plain)]
    assert "t0" in middles(padded, ranges[0])
    assert "t0" not in middles(padded, ranges[0], copies=False)
    assert copied_tensors(padded) == {"t0"}
    assert middles(plain, ranges[1], copies=False) == middles(plain, ranges[1])
    assert not copied_tensors(plain)
    quantized = quantize(padded, data_for(padded, 20, 0))
    assert not [node for node in quantized.nodes if isinstance(node.op, QGather)]


def chain(*, made_by: Conv2d | Affine, last: Operator, seed: int = 2) -> Graph:
    """A layer behind a ReLU, and two that pad what it makes alike."""
    rng = np.random.default_rng(seed)
    b = Builder((1, 16, 6, 6))
    name = b.put(replace(made_by, lo=0.0, hi=math.inf), b.put(conv(rng, 16, 16, window(1)), "x"))
    around = window(pad=1)
    return b.graph(
        b.put(Add(), b.put(conv(rng, 16, 16, around, groups=16), name), b.put(last, name))
    )


SCALED = Affine(weight=np.linspace(1, 2, 16, dtype=np.float32), bias=np.ones(16, np.float32))


@pytest.mark.parametrize(
    ("made_by", "pads", "stored"),
    [
        (conv(np.random.default_rng(3), 16, 16, window(pad=1)), (1, 1, 1, 1), True),
        (conv(np.random.default_rng(3), 16, 16, window(pad=1), groups=16), (1, 1, 1, 1), True),
        (SCALED, (1, 1, 1, 1), True),
        (conv(np.random.default_rng(3), 16, 16, window(pad=1)), (2, 0, 0, 2), False),
    ],
    ids=["conv", "depthwise", "affine", "other-pads"],
)
def test_mixed_takes_middles_where_a_border_is_stored(
    made_by: Conv2d | Affine, pads: tuple[int, int, int, int], stored: bool
) -> None:
    """The layer writes into the middle of it, and the processor only what is around."""
    last = conv(np.random.default_rng(4), 16, 16, replace(window(pad=1), pad=pads))
    graph = chain(made_by=made_by, last=last)
    assert ("t1" in copied_tensors(graph)) == (not stored)
    data = {"x": np.random.default_rng(1).standard_normal((20, 16, 6, 6)).astype(np.float32)}
    quantized = quantize(graph, data)
    network = partition_network(quantized, TARGETS["sim"])
    operators = [step.workload.operator for step in network.steps]
    assert operators.count("border") == (1 if stored else 0)
    assert "gather" not in operators
    one = {"x": data["x"][:1]}
    (name,) = run_integer(quantized, one)
    assert run_network(network, one)[name].tobytes() == run_integer(quantized, one)[name].tobytes()
    if stored:
        (border,) = [step for step in network.steps if step.workload.operator == "border"]
        maker = next(
            step for step in network.steps if step is not border and step.outputs == border.outputs
        )
        assert (border.place, maker.place) == ("cpu", "accelerator")
        assert maker.workload.attr_ints("border") == pads


def test_the_partitioned_network_gives_the_same_bits() -> None:
    graph = stack()
    data = data_for(graph, 20, 0)
    quantized = quantize(graph, data, replace(ASYMMETRIC, correct_bias=True))
    network = partition_network(quantized, TARGETS["sim"])
    one = {"x": data["x"][:1]}
    expected = run_integer(quantized, one)["out0"]
    assert run_network(network, one)["out0"].tobytes() == expected.tobytes()


def test_a_layer_kept_in_float_may_make_what_is_centered() -> None:
    graph = stack()
    data = data_for(graph, 50, 0)
    floats = run_float(graph, data)["out0"]
    for how in (ASYMMETRIC, replace(ASYMMETRIC, keep_float=("n1",))):
        integers = run_integer(quantize(graph, data, how), data)["out0"]
        assert noise_between(floats, integers).ratio_db > 25


def answers(last: Operator | None = None, *, lo: float = -1.0, hi: float = 7.0) -> Graph:
    """A quantized network of two layers whose answers lie between two ends, not around zero."""
    rng = np.random.default_rng(4)
    b = Builder((1, 40))
    name = b.put(replace(dense(rng, 40, 64), lo=0.0, hi=5.0), "x")
    layer = dense(rng, 64, 12)
    layer.bias[:] += 3.0
    name = b.put(replace(layer, lo=lo, hi=hi), name)
    graph = b.graph(b.put(last, name) if last else name)
    grid = Grid(8 / 255, 128, "uint8")
    given = replace(graph.inputs[0], rounding=grid)
    ranges = dict.fromkeys(graph.shapes, 5.0) | {"x": grid.reach, "t1": max(-lo, hi)}
    return replace(graph, inputs=(given,), ranges=ranges)


def test_an_answer_keeps_its_zero_point() -> None:
    """Its step is that of the model, not that of a range around zero."""
    graph = answers()
    data = data_for(graph, 64, 0)
    quantized = quantize(graph, None)
    answer = quantized.tensors["t1"]
    assert answer.scale == pytest.approx(8 / 255)
    assert answer.middle == pytest.approx(-1 + 128 * 8 / 255)
    network = partition_network(quantized, TARGETS["sim"])
    expected = run_integer(quantized, data)["out0"]
    for at in range(3):
        one = {"x": data["x"][at : at + 1]}
        assert run_network(network, one)["out0"].tobytes() == expected[at : at + 1].tobytes()
    floats = run_float(graph, data)["out0"]
    around_zero = run_integer(quantize(graph, None, SYMMETRIC), data)["out0"]
    noise = [np.square(each - floats).mean() for each in (expected, around_zero)]
    assert noise[0] < 0.8 * noise[1]


def test_a_softmax_reads_scores_without_their_middle() -> None:
    graph = answers(Softmax())
    data = data_for(graph, 64, 0)
    quantized = quantize(graph, None)
    assert quantized.tensors["t1"].middle
    floats = run_float(graph, data)["out0"]
    assert noise_between(floats, run_integer(quantized, data)["out0"]).ratio_db > 25


def test_an_answer_that_another_layer_reads_stays() -> None:
    graph = answers(dense(np.random.default_rng(0), 12, 4))
    both = tuple(replace(graph.outputs[0], name=name, tensor=name) for name in ("t1", "t2"))
    graph = replace(graph, outputs=both)
    assert quantize(graph, None).tensors["t1"].middle == 0.0


def test_an_answer_that_a_layer_makes_in_float_stays() -> None:
    graph = answers()
    data = data_for(graph, 8, 0)
    quantized = quantize(graph, None, Quantization(keep_float=("n1",)))
    floats = run_float(graph, data)["out0"]
    assert noise_between(floats, run_integer(quantized, data)["out0"]).ratio_db > 25


def one_input(values: NDArray[Any]) -> ZeroPoint | None:
    """What could be taken from an input with these values."""
    b = Builder((1, 3, 5, 5))
    graph = b.graph(b.put(conv(np.random.default_rng(0), 3, 16, window()), "x"))
    data = {"x": values.astype(np.float32)}
    return input_zero_points(graph, ranges_of(graph, data), data).get("x")


IMAGES = np.random.default_rng(7).integers(0, 256, (8, 3, 5, 5))


@pytest.mark.parametrize(
    ("scale", "least"), [(1.0, 0.0), (1 / 255, 0.0), (2 / 255, -1.0), (0.0078431, -0.99607)]
)
def test_images_of_bytes_become_the_very_same_integers(scale: float, least: float) -> None:
    images = (IMAGES * scale + least).astype(np.float32)
    middle = one_input(images)
    assert middle is not None
    steps = (images.astype(np.float64) - middle.real) / (middle.reach / 127)
    assert np.abs(steps - np.rint(steps)).max() < 0.01
    assert (np.rint(steps) == IMAGES - 128).all()


@pytest.mark.parametrize("levels", [2, 5, 17, 100])
def test_a_grid_of_few_levels_leaves_room_between_them(levels: int) -> None:
    """What calibrates may be coarser than what comes later."""
    values = np.random.default_rng(8).integers(0, levels, (8, 3, 5, 5)) * 0.5
    middle = one_input(values)
    assert middle is not None
    step = middle.reach / 127
    assert step <= 0.5 * (levels - 1) / 128
    places = (values - middle.real) / step
    assert np.abs(places - np.rint(places)).max() < 1e-3
    assert places.min() == pytest.approx(-128)
    assert 0 <= places.max() < 127.001


def test_other_inputs_have_a_middle_only_if_much_is_gained() -> None:
    """Their zero is exact, for layers pad with it."""
    rng = np.random.default_rng(9)
    assert one_input(rng.standard_normal((8, 3, 5, 5))) is None
    lopsided = one_input(rng.uniform(-0.1, 1.0, (8, 3, 5, 5)))
    assert lopsided is not None
    zero = lopsided.real / (lopsided.reach / 127)
    assert zero == pytest.approx(round(zero))
    positive = one_input(rng.uniform(2.0, 3.0, (8, 3, 5, 5)))
    assert positive is not None
    assert positive.real == pytest.approx(positive.reach * 128 / 127, rel=0.01)
