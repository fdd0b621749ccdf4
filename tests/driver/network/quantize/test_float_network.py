"""`--float`: nothing is quantized, on targets that compute floats."""

from __future__ import annotations

import numpy as np
import pytest
from kit.networks.random_networks import Builder, conv, samples_for, window
from tilefarm.errors import ModelError, SettingsError
from tilefarm.target import TARGETS, load_target

from driver.network.graph.float_run import run_float
from driver.network.graph.grid import Grid
from driver.network.graph.ir import FakeQuantize, Graph, Normalize, Softmax
from driver.network.integer.qir import QReshape, Real
from driver.network.integer.reference import run_integer
from driver.network.quantize.fitting import fit_quantization
from driver.network.quantize.float_form import float_form
from driver.network.quantize.float_network import float_network
from driver.network.quantize.options import Quantization
from driver.network.rewrites.fold import fold

CPU = load_target("cpu")
FLOATS = Quantization(floats=True)


def network() -> Graph:
    rng = np.random.default_rng(3)
    builder = Builder((1, 3, 6, 7))
    first = builder.put(conv(rng, 3, 32, window(3, pad=1)), "x")
    normal = builder.put(Normalize(axes=(1,), epsilon=1e-5), first)
    last = builder.put(conv(rng, 32, 16, window(1)), normal)
    return fold(builder.graph(builder.put(Softmax(axis=1), last)))


def test_every_operator_is_one_of_floats_and_no_data_are_needed() -> None:
    graph = network()
    fitted = fit_quantization(CPU, graph, None, FLOATS)
    assert all(isinstance(node.op, Real | QReshape) for node in fitted.quantized.nodes)
    assert fitted.how == FLOATS
    assert float_form(graph, None, FLOATS) is graph


def test_it_answers_what_the_float_network_does() -> None:
    graph = network()
    data = samples_for(graph, 0)
    found, wanted = run_integer(float_network(graph, CPU), data), run_float(graph, data)
    for output in graph.outputs:
        np.testing.assert_allclose(
            found[output.name], wanted[output.name], rtol=1e-4, atol=1e-5, strict=True
        )


def test_an_accelerator_has_no_floats() -> None:
    with pytest.raises(SettingsError, match="sim has an accelerator") as refused:
        float_network(network(), TARGETS["sim"])
    assert refused.value.hint == "--target cpu"


def test_a_model_of_integers_is_refused() -> None:
    rng = np.random.default_rng(3)
    builder = Builder((1, 3, 6, 7))
    given = FakeQuantize(grid=Grid(0.1, 0, "int8"))
    graph = builder.graph(builder.put(conv(rng, 3, 32, window(1)), builder.put(given, "x")))
    with pytest.raises(ModelError, match="the model was quantized before") as refused:
        float_network(graph, CPU)
    assert refused.value.hint == "leave --float out"


@pytest.mark.parametrize("other", [{"equalize": True}, {"keep_float": ("conv",)}])
def test_other_options_of_quantization_say_nothing_beside_it(other: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match="--float quantizes nothing"):
        Quantization(floats=True, **other)  # type: ignore[arg-type]
