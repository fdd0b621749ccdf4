"""Functions as tables: exact to half a step; products to half a step and what the table rounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.examples import examples
from kit.networks.random_networks import Builder, samples_for
from tilefarm.target import TARGETS, Target, VtaConfig

from driver.network.graph.float_run import run_float
from driver.network.graph.functions import FUNCTIONS, erf, evaluate
from driver.network.graph.ir import Gather, Operator, Product, Slopes, Unary
from driver.network.integer import reference
from driver.network.integer.reference import run_integer, run_network
from driver.network.partition.partitioner import partition_network
from driver.network.quantize.quantizer import quantize
from driver.network.quantize.tables import factor_table, int8_values, slopes_table, unary_table

PARAMETERS: dict[str, tuple[float, ...]] = {
    "celu": (1.5,),
    "elu": (0.7,),
    "hard_sigmoid": (0.2, 0.5),
    "leaky_relu": (0.1,),
    "power": (3.0,),
    "selu": (1.67, 1.05),
    "shrink": (0.3, 0.5),
    "thresholded_relu": (0.6,),
    "wrap": (-8.0, 16.0),
}
SCALES = st.floats(1e-4, 10.0)


@pytest.mark.parametrize("function", FUNCTIONS)
@settings(max_examples=examples(12), deadline=None)
@given(in_scale=SCALES, out_scale=SCALES)
def test_a_table_is_right_to_half_a_step(function: str, in_scale: float, out_scale: float) -> None:
    op = Unary(function=function, parameters=PARAMETERS.get(function, ()))
    wanted = evaluate(function, int8_values() * in_scale, op.parameters)
    got = unary_table(op, in_scale, out_scale) * np.float64(out_scale)
    valued = ~np.isnan(wanted)
    inside = np.clip(wanted[valued], -128 * out_scale, 127 * out_scale)
    assert np.abs(got[valued] - inside).max(initial=0) <= out_scale / 2 * (1 + 1e-9)
    assert not got[~valued].any()


def test_halves_go_to_the_even_step() -> None:
    table = unary_table(Unary(function="neg"), 0.5, 1.0)
    assert table[128 + np.array([1, 3, 5, -1, -3, -128])].tolist() == [0, -2, -2, 0, 2, 64]


def test_the_error_function() -> None:
    x = np.array([[0.0, -np.inf], [0.5, -1.0]])
    wanted = [[0.0, -1.0], [0.5204998778130465, -0.8427007929497149]]
    np.testing.assert_allclose(erf(x), wanted, rtol=1e-15)
    assert erf(x[:0]).shape == (0, 2)


def test_a_slope_for_each_channel() -> None:
    slope = np.array([0.5, -1.0, 2.0], np.float32)
    table = slopes_table(Slopes(slope=slope), 0.1, 0.1)
    assert table.shape == (3, 256)
    assert table[:, 128 + 100].tolist() == [100, 100, 100]
    assert table[:, 128 - 100].tolist() == [-50, 100, -128]


@settings(max_examples=examples(60), deadline=None)
@given(SCALES, SCALES, SCALES, st.booleans())
def test_a_product_is_right_to_half_a_step_and_a_thousandth(
    scale_a: float, scale_b: float, out_scale: float, divides: bool
) -> None:
    table, shift = factor_table(scale_a, scale_b, out_scale, divides=divides)
    assert np.abs(table.astype(np.int64)).max() <= 1 << 23
    a, b = np.meshgrid(np.arange(-128, 128), np.r_[-128:0, 1:128])
    exact = scale_a * a / (scale_b * b) if divides else scale_a * a * scale_b * b
    got = np.clip((a * table[b + 128].astype(np.int64) + ((1 << shift) >> 1)) >> shift, -128, 127)
    inside = np.clip(exact / out_scale, -128, 127)
    slack = 0.5 + np.abs(inside) / 1000 + (64 / (1 << shift) if shift < 30 else 1e-6)
    assert (np.abs(got - inside) <= slack).all()


WIDE = Target(name="wide", vta=VtaConfig(log_batch=1, log_block=3))
CASES: dict[str, tuple[Operator, int]] = {
    "sigmoid": (Unary(function="sigmoid"), 1),
    "log": (Unary(function="log"), 1),
    "slopes": (Slopes(slope=np.linspace(-1, 2, 19).astype(np.float32)), 1),
    "product": (Product(), 2),
    "quotient": (Product(divides=True), 2),
    "gather": (
        Gather(index=np.random.default_rng(1).integers(-1, 19 * 12, (5, 7), np.int32)),
        1,
    ),
}


@pytest.mark.parametrize("target", [TARGETS["sim"], WIDE], ids=lambda t: t.name)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("batch", [1, 3])
def test_the_steps_of_an_operator_are_its_integer_form(
    case: str, target: Target, batch: int
) -> None:
    op, many = CASES[case]
    b = Builder((batch, 19, 4, 3))
    above_zero = b.put(Unary(function="exp"), "x")
    graph = b.graph(b.put(op, *([above_zero, "x"] if many == 2 else [above_zero])))
    data = samples_for(graph, 3)
    quantized = quantize(graph, data)
    one = {name: values[:batch] for name, values in data.items()}
    wanted = run_integer(quantized, one)["out0"]
    network = partition_network(quantized, target)
    assert [step.place for step in network.steps] == ["cpu"] * len(network.steps)
    assert all(step.why for step in network.steps)
    assert run_network(network, one)["out0"].tobytes() == wanted.tobytes()


def test_integers_follow_the_float_network() -> None:
    """x * sigmoid(x) of two tables: within a step of each scale on the way."""
    b = Builder((2, 5, 3, 3))
    gate = b.put(Unary(function="sigmoid"), "x")
    graph = b.graph(b.put(Product(), "x", gate))
    data = samples_for(graph, 1, count=8)
    quantized = quantize(graph, data)
    error = np.abs(run_integer(quantized, data)["out0"] - run_float(graph, data)["out0"]).max()
    scales = {name: tensor.scale or 0.0 for name, tensor in quantized.tensors.items()}
    most = scales["x.int8"] * 128
    allowed = 1.1 * scales["x.int8"] / 2 + most * scales[gate] / 2 + scales["t1"] / 2
    assert 0 < error <= allowed * 1.01


def test_a_division_by_zero_gives_the_largest_quotient() -> None:
    table, shift = factor_table(0.1, 0.1, 0.1, divides=True)
    a, b = (np.array([[value]], np.int8) for value in (50, 0))
    from driver.network.integer.qir import QProduct

    assert reference.apply(QProduct(table=table, shift=shift), a, b).tolist() == [[127]]
