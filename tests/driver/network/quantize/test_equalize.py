"""Equalization keeps what the network computes and brings its channels together."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace

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
from tilefarm.errors import DataError

from driver.commands.validation.layer_noise import noise_of
from driver.network.graph.float_run import run_float
from driver.network.graph.ir import (
    Add,
    Affine,
    Clip,
    Concat,
    Conv2d,
    FloatArray,
    Graph,
    MaxPool2d,
    Operator,
    Reshape,
    Slice,
    Unary,
)
from driver.network.integer.reference import run_integer
from driver.network.quantize import channel_weights, equalize
from driver.network.quantize.channel_groups import ChannelGroups
from driver.network.quantize.equalize import equalized
from driver.network.quantize.float_form import float_form
from driver.network.quantize.options import Quantization
from driver.network.quantize.quantizer import quantize

RELU = Clip(lo=0.0, hi=math.inf)


@settings(max_examples=examples(25), deadline=None)
@given(networks())
def test_results_stay_to_rounding(case: tuple[Graph, int]) -> None:
    graph, seed = case
    data = samples_for(graph, seed)
    before, after = run_float(graph, data), run_float(equalized(graph, data), data)
    for name, values in before.items():
        assert np.abs(after[name] - values).max() <= 1e-4 * max(1.0, np.abs(values).max())


def uneven(between: Operator | None = None, *, lo: float = 0.0) -> Graph:
    """Two convolutions; the channels between them span a factor of 16."""
    rng = np.random.default_rng(3)
    b = Builder((1, 4, 6, 6))
    first = conv(rng, 4, 16, window(pad=1))
    spread = np.geomspace(0.5, 8, 16).astype(np.float32)
    weight, bias = first.weight * spread[:, None, None, None], np.abs(first.bias) * spread
    first = replace(first, weight=weight, bias=bias, lo=lo)
    name = b.put(first, "x")
    if between is not None:
        name = b.put(between, name)
    second = conv(rng, b.shapes[name][1], 5, window(pad=1))
    second = replace(second, weight=second.weight / spread[: b.shapes[name][1], None, None])
    return b.graph(b.put(second, name))


def reaches(graph: Graph, name: str) -> list[float]:
    """The largest magnitude of each channel of a tensor."""
    found: dict[str, list[float]] = {}

    def observe(seen: str, values: FloatArray) -> None:
        found[seen] = list(np.abs(values).max(axis=(0, 2, 3)))

    run_float(graph, samples_for(graph, 0), observe=observe)
    return found[name]


def test_channels_come_nearer_and_the_integers_more_exact() -> None:
    graph = uneven()
    data = samples_for(graph, 0)
    flat = equalized(graph, data)
    before, after = reaches(graph, "t0"), reaches(flat, "t0")
    assert max(after) / min(after) < max(before) / min(before) / 2
    noise = {
        how: noise_of(float_form(graph, data, how), quantize(graph, data, how), data)["t1"]
        for how in (Quantization(), Quantization(equalize=True))
    }
    plain, better = noise.values()
    assert better.ratio_db > plain.ratio_db + 3


def test_rows_that_are_worked_on_apart_get_the_same_factors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = uneven()
    data = samples_for(graph, 0)
    whole = equalized(graph, data)
    monkeypatch.setattr(equalize, "CACHED_ELEMENTS", 8)
    monkeypatch.setattr(channel_weights, "CACHED_ELEMENTS", 100)
    for node, other in zip(equalized(graph, data).nodes, whole.nodes, strict=True):
        assert isinstance(node.op, Conv2d)
        assert isinstance(other.op, Conv2d)
        assert np.array_equal(node.op.weight, other.op.weight)


def test_a_large_layer_is_equalized_in_little_memory_besides_itself() -> None:
    """16 MiB of weights; a number of float64 for each of them would be 32 MiB, several times."""
    rng = np.random.default_rng(0)
    b = Builder((1, 2048))
    name = b.put(replace(dense(rng, 2048, 2048), lo=0.0), "x")
    graph = b.graph(b.put(dense(rng, 2048, 4), name))
    nbytes = 4 * 2048 * 2048
    tracemalloc.start()
    flat = equalized(graph, samples_for(graph, 0))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert flat is not graph
    assert nbytes < peak < 2 * nbytes


def test_a_network_is_equalized_where_the_user_wants_it() -> None:
    graph = uneven()
    data = samples_for(graph, 0)
    by_hand = run_integer(quantize(equalized(graph, data), data), data)["out0"]
    by_option = run_integer(quantize(graph, data, Quantization(equalize=True)), data)["out0"]
    assert by_option.tobytes() == by_hand.tobytes()
    assert float_form(graph, data, Quantization(activations="symmetric")) is graph


@pytest.mark.parametrize(
    "between", [None, RELU, MaxPool2d(window=window(2)), Slice(start=2, stop=9)]
)
def test_what_a_factor_passes_through(between: Operator | None) -> None:
    assert ChannelGroups(uneven(between)).is_free.any()


@pytest.mark.parametrize(
    "graph",
    [
        uneven(Clip(lo=-1.0, hi=6.0)),
        uneven(Unary(function="sigmoid")),
        uneven(lo=-1.0),
        replace(uneven(), ranges={"t0": 2.0}),
    ],
)
def test_where_values_must_stay_they_do(graph: Graph) -> None:
    groups = ChannelGroups(graph)
    assert not groups.is_free[groups.channels("t0")].any()
    same = equalized(graph, samples_for(graph, 0))
    for node, kept in zip(graph.nodes, same.nodes, strict=True):
        if isinstance(node.op, Conv2d) and isinstance(kept.op, Conv2d):
            assert np.array_equal(kept.op.weight, node.op.weight)


def test_beside_a_channel_that_a_clip_cuts_others_come_nearer_to_it() -> None:
    graph = uneven(lo=0.0)
    data = samples_for(graph, 0)
    reach = np.array(reaches(graph, "t0"))
    top = float(reach.max() / 2)
    first, second = graph.nodes
    assert isinstance(first.op, Conv2d)
    cut = replace(graph, nodes=(replace(first, op=replace(first.op, hi=top)), second))
    flat = equalized(cut, data)
    before, after = np.array(reaches(cut, "t0")), np.array(reaches(flat, "t0"))
    stays = 2 * before >= top
    assert 0 < stays.sum() < len(stays)
    np.testing.assert_allclose(after[stays], before[stays], rtol=1e-6)
    assert (after[~stays] > 1.2 * before[~stays]).any()
    assert (after[~stays] <= 1.001 * top / 2).all()
    was, now = (run_float(each, data)["out0"] for each in (cut, flat))
    assert np.abs(now - was).max() <= 1e-4 * np.abs(was).max()


def test_a_clip_that_cuts_every_channel_leaves_the_network_as_it_is() -> None:
    graph = uneven(Clip(lo=0.0, hi=0.01))
    assert equalized(graph, samples_for(graph, 0)) is graph


@pytest.mark.parametrize("how", [Quantization(equalize=True), Quantization(correct_bias=True)])
def test_data_that_lead_too_far_are_refused_as_ever(how: Quantization) -> None:
    graph = uneven()
    data = {"x": np.full((2, 4, 6, 6), 3e38, np.float32)}
    with pytest.raises(DataError, match="beyond float32"):
        quantize(graph, data, how)


def test_tensors_that_are_added_or_joined_have_one_factor() -> None:
    rng = np.random.default_rng(0)
    b = Builder((1, 3, 4, 4))
    one, other = (b.put(conv(rng, 3, 2, window(1)), "x") for _ in range(2))
    both = b.put(Add(lo=0.0), one, other)
    joined = b.put(Concat(), both, one)
    flat = b.put(Reshape(shape=(64,)), joined)
    groups = ChannelGroups(b.graph(b.put(dense(rng, 64, 2), flat)))
    first = groups.group[groups.channels(one)]
    for name in (other, both):
        assert np.array_equal(groups.group[groups.channels(name)], first)
    assert np.array_equal(groups.group[groups.channels(joined)], np.tile(first, 2))
    assert np.array_equal(groups.group[groups.channels(flat)], np.repeat(np.tile(first, 2), 16))
    assert len(set(first)) == 2


@pytest.mark.parametrize("kind", ["grouped", "transposed", "affine"])
def test_every_layer_takes_factors_on_both_sides(kind: str) -> None:
    rng = np.random.default_rng(1)
    b = Builder((1, 3, 5, 5))
    name = b.put(conv(rng, 3, 8, window(pad=1)), "x")
    layer: Operator = conv(rng, 8, 8, window(pad=1), groups=2)
    if kind == "transposed":
        layer = transposed(rng, 8, 8, (2, 2), (2, 2))
    elif kind == "affine":
        ones = np.ones(8, np.float32)
        layer = Affine(weight=ones * np.geomspace(0.1, 1, 8).astype(np.float32), bias=ones, lo=0.0)
    name = b.put(layer, name)
    graph = b.graph(b.put(conv(rng, 8, 2, window()), name))
    data = samples_for(graph, 1)
    flat = equalized(graph, data)
    assert reaches(flat, "t0") != reaches(graph, "t0")
    assert reaches(flat, "t1") != reaches(graph, "t1")
    before, after = (run_float(each, data)["out0"] for each in (graph, flat))
    np.testing.assert_allclose(after, before, rtol=1e-3, atol=1e-4)
