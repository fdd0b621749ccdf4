"""Which layers get weights of 16 bits."""

from __future__ import annotations

import numpy as np
import pytest
from kit.networks.random_networks import Builder, conv, dense, samples_for, window

from driver.network.accuracy.remedies import Remedy
from driver.network.quantize.layer_remedies import fewest, widenings, with_remedies
from driver.network.quantize.options import Quantization
from driver.network.quantize.quantizer import quantize


def some(layers: str) -> list[Remedy]:
    return [Remedy(layer=layer, kind="wide") for layer in layers]


@pytest.mark.parametrize("needed", range(1, 8))
def test_the_fewest_that_are_enough(needed: int) -> None:
    layers = some("abcdefg")
    tried: list[int] = []

    def changed(names: tuple[Remedy, ...]) -> float:
        tried.append(len(names))
        return 0.01 if len(names) >= needed else 0.5

    assert fewest(layers, changed, 0.5, 0.02) == tuple(layers[:needed])
    assert len(tried) == len(set(tried)) <= 6


def test_none_where_all_of_them_hardly_help() -> None:
    tried: list[tuple[Remedy, ...]] = []

    def changed(names: tuple[Remedy, ...]) -> float:
        tried.append(names)
        return 0.4

    assert fewest(some("abc"), changed, 0.5, 0.02) == ()
    assert tried == [tuple(some("abc"))]
    assert fewest([], changed, 0.5, 0.02) == ()


def test_as_good_as_all_where_all_help_much_and_are_not_enough() -> None:
    shares = {1: 0.3, 2: 0.11, 3: 0.1, 4: 0.1}
    assert fewest(some("abcd"), lambda names: shares[len(names)], 0.5, 0.02) == tuple(some("ab"))


def test_what_adds_much_noise_for_little_work_comes_first() -> None:
    rng = np.random.default_rng(1)
    b = Builder((1, 16, 8, 8))
    heavy = b.put(conv(rng, 16, 16, window()), "x")
    grouped = b.put(conv(rng, 16, 16, window(), groups=16), heavy)
    light = conv(rng, 16, 16, window(1))
    light.weight[:, 0] *= 50
    graph = b.graph(b.put(light, grouped))
    data = samples_for(graph, 0, 12)
    first, middle, last = (node.name for node in graph.nodes)
    found = widenings(graph, quantize(graph, data), data)
    of_weights = [each.layer for each in found if each.kind == "wide"]
    assert of_weights == [last, middle, first], "one channel a group is a sixteenth of the work"
    of_results = {each.layer for each in found if each.kind == "results"}
    assert of_results == {first, middle}, "the last one is an output"


def test_what_has_16_bits_already_is_left_out() -> None:
    rng = np.random.default_rng(0)
    b = Builder((1, 16))
    graph = b.graph(b.put(dense(rng, 16, 16), b.put(dense(rng, 16, 16), "x")))
    data = samples_for(graph, 0, 12)
    first, _ = (node.name for node in graph.nodes)
    wide = quantize(graph, data, Quantization(wide=("*",), wide_activations=(first,)))
    assert widenings(graph, wide, data) == []


def test_they_come_to_what_a_way_has_already() -> None:
    more = [*some("b"), Remedy(layer="a", kind="results")]
    how = with_remedies(Quantization(wide=("a",)), more)
    assert (how.wide, how.wide_activations) == (("a", "b"), ("a",))
    assert with_remedies(Quantization(), some("b")).wide_activations is None
