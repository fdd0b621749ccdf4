"""Which layers get weights of 16 bits."""

from __future__ import annotations

import numpy as np
import pytest
from kit.networks import Builder, conv, dense, samples_for, window

from driver.quantize.options import Quantization
from driver.quantize.quantizer import quantize
from driver.quantize.widening import fewest, layers_by_gain


@pytest.mark.parametrize("needed", range(1, 8))
def test_the_fewest_that_are_enough(needed: int) -> None:
    layers = list("abcdefg")
    tried: list[int] = []

    def changed(names: tuple[str, ...]) -> float:
        tried.append(len(names))
        return 0.01 if len(names) >= needed else 0.5

    assert fewest(layers, changed, 0.5, 0.02) == tuple(layers[:needed])
    assert len(tried) == len(set(tried)) <= 6


def test_none_where_all_of_them_hardly_help() -> None:
    tried: list[tuple[str, ...]] = []

    def changed(names: tuple[str, ...]) -> float:
        tried.append(names)
        return 0.4

    assert fewest(list("abc"), changed, 0.5, 0.02) == ()
    assert tried == [("a", "b", "c")]
    assert fewest([], changed, 0.5, 0.02) == ()


def test_as_good_as_all_where_all_help_much_and_are_not_enough() -> None:
    shares = {1: 0.3, 2: 0.11, 3: 0.1, 4: 0.1}
    assert fewest(list("abcd"), lambda names: shares[len(names)], 0.5, 0.02) == ("a", "b")


def test_layers_whose_weights_add_much_noise_for_little_work_come_first() -> None:
    rng = np.random.default_rng(1)
    b = Builder((1, 16, 8, 8))
    heavy = b.put(conv(rng, 16, 16, window()), "x")
    grouped = b.put(conv(rng, 16, 16, window(), groups=16), heavy)
    light = conv(rng, 16, 16, window(1))
    light.weight[:, 0] *= 50
    graph = b.graph(b.put(light, grouped))
    data = samples_for(graph, 0, 12)
    names = {node.output: node.name for node in graph.nodes}
    found = layers_by_gain(graph, quantize(graph, data), data)
    assert found[0] == graph.nodes[-1].name
    assert names[grouped] not in found


def test_layers_that_are_wide_already_are_left_out() -> None:
    b = Builder((1, 16))
    graph = b.graph(b.put(dense(np.random.default_rng(0), 16, 16), "x"))
    data = samples_for(graph, 0, 12)
    wide = quantize(graph, data, Quantization(wide=("*",)))
    assert layers_by_gain(graph, wide, data) == []
