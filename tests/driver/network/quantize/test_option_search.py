"""Ways to integers are chosen by what they leave of the signal on data that did not calibrate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kit.networks.random_networks import Builder, conv, dense, samples_for, window
from tilefarm.target import TARGETS, Target

from driver.network.graph.float_run import run_float
from driver.network.graph.ir import Clip, Dense, Graph, Softmax
from driver.network.graph.parts import Arrays
from driver.network.integer.noise import noise_between
from driver.network.integer.qir import QuantGraph
from driver.network.integer.reference import run_integer
from driver.network.quantize import option_search
from driver.network.quantize.fitting import fit_quantization, quantize_for
from driver.network.quantize.float_form import FloatForm, form_of
from driver.network.quantize.integer_bias import Biased
from driver.network.quantize.moments import moments
from driver.network.quantize.option_search import choose_options
from driver.network.quantize.options import AS_USUAL, Quantization
from driver.network.quantize.quantizer import quantize


def with_outliers(samples: int = 30) -> tuple[Graph, Arrays]:
    """A layer, and data of which a value in a thousand is a hundred times as large as others."""
    rng = np.random.default_rng(2)
    b = Builder((1, 16, 8, 8))
    layer = replace(conv(rng, 16, 8, window()), bias=np.zeros(8, np.float32))
    graph = b.graph(b.put(Clip(lo=-40.0, hi=40.0), b.put(layer, b.put(Clip(lo=-4, hi=4), "x"))))
    x = rng.standard_normal((samples, 16, 8, 8)).astype(np.float32)
    x.reshape(samples, -1)[:, 7] *= 100
    return graph, {"x": x}


def by(graph: Graph, seen: list[Quantization]) -> Callable[[Arrays, Quantization], QuantGraph]:
    """A quantizer that notes which ways are asked for."""

    def quantized_by(data: Arrays, how: Quantization) -> QuantGraph:
        seen.append(how)
        return quantize(graph, data, how)

    return quantized_by


def ratio_db(graph: Graph, quantized: QuantGraph, data: Arrays) -> float:
    return noise_between(
        run_float(graph, data)["out0"], run_integer(quantized, data)["out0"]
    ).ratio_db


def test_ranges_that_rare_values_would_spoil_are_read_by_another_method() -> None:
    graph, data = with_outliers()
    seen: list[Quantization] = []
    chosen = choose_options(graph, data, AS_USUAL, by(graph, seen))
    assert chosen.how.calibration in {"percentile", "entropy"}
    assert chosen.why is not None
    assert str(chosen.how) in chosen.why
    assert "did not calibrate it, minmax" in chosen.why
    assert replace(seen[-1], wide=chosen.how.wide) == chosen.how
    _, fresh = with_outliers(60)
    usual = quantize(graph, data)
    assert ratio_db(graph, chosen.quantized, fresh) > ratio_db(graph, usual, fresh) + 1


def test_the_same_data_choose_the_same_way() -> None:
    graph, data = with_outliers()
    one, other = (choose_options(graph, data, AS_USUAL, by(graph, [])) for _ in range(2))
    assert (one.how, one.why) == (other.how, other.why)


def test_what_the_user_decided_is_left_alone() -> None:
    graph, data = with_outliers()
    how = Quantization(
        calibration="minmax", equalize=False, share_shifts=False, wide=(), wide_activations=()
    )
    seen: list[Quantization] = []
    chosen = choose_options(graph, data, how, by(graph, seen))
    assert (chosen.how, chosen.why) == (how, None)
    assert seen == [how]
    seen.clear()
    choose_options(graph, data, Quantization(calibration="minmax"), by(graph, seen))
    assert {each.calibration for each in seen} == {"minmax"}


@pytest.mark.parametrize("samples", [1, 8])
def test_so_few_samples_choose_nothing(samples: int) -> None:
    graph, data = with_outliers(samples)
    seen: list[Quantization] = []
    assert choose_options(graph, data, AS_USUAL, by(graph, seen)).why is None
    assert seen == [AS_USUAL]


def test_a_model_with_ranges_of_its_own_is_taken_as_it_is() -> None:
    graph, data = with_outliers()
    seen: list[Quantization] = []
    given = replace(graph, ranges={"t0": 4.0})
    assert choose_options(given, data, AS_USUAL, by(given, seen)).why is None
    assert seen == [AS_USUAL]


def with_large_weights(samples: int = 60) -> tuple[Graph, Arrays]:
    """Two layers; in the first one, a weight of each channel is 1,000 times as large as the others.

    What it meets is always zero.
    """
    rng = np.random.default_rng(5)
    b = Builder((1, 48))
    first = dense(rng, 48, 16)
    first.weight[:, 0] = 1000 * np.abs(first.weight).max()
    graph = b.graph(b.put(dense(rng, 16, 10), b.put(first, "x")))
    x = rng.standard_normal((samples, 48)).astype(np.float32)
    x[:, 0] = 0
    return graph, {"x": x}


def test_the_layers_whose_weights_change_many_answers_have_wide_ones() -> None:
    graph, data = with_large_weights()
    chosen = choose_options(graph, data, AS_USUAL, by(graph, []))
    assert chosen.how.wide == (graph.nodes[0].name,)
    assert chosen.why is not None
    assert "weights of 16 bits in 1 layer: " in chosen.why
    _, fresh = with_large_weights(200)
    usual = quantize(graph, data)
    assert ratio_db(graph, chosen.quantized, fresh) > ratio_db(graph, usual, fresh) + 6
    narrow = choose_options(graph, data, Quantization(wide=()), by(graph, []))
    assert narrow.how.wide == ()


def test_fewer_changes_are_not_worth_cycles_that_nobody_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, data = with_large_weights()
    monkeypatch.setattr(option_search, "FAR_TOO_MANY", 1.0)
    seen: list[Quantization] = []
    how = choose_options(graph, data, AS_USUAL, by(graph, seen)).how
    assert (how.wide, how.wide_activations) == (None, None)
    assert len(seen) > 1, "what costs no cycles was tried"


def test_ways_share_what_they_have_in_common_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, data = with_large_weights()
    made: list[Quantization] = []
    tried: list[Quantization] = []

    def counted(graph: Graph, some: Arrays, way: Quantization) -> FloatForm:
        made.append(way)
        return form_of(graph, some, way)

    def compared(
        target: Target, graph: Graph, some: Arrays, way: Quantization, *, form: FloatForm
    ) -> QuantGraph:
        tried.append(way)
        found, anew = (quantize_for(target, graph, some, way, form=each) for each in (form, None))
        np.testing.assert_array_equal(
            run_integer(found, data)["out0"], run_integer(anew, data)["out0"]
        )
        return found

    monkeypatch.setattr("driver.network.quantize.fitting.form_of", counted)
    monkeypatch.setattr("driver.network.quantize.fitting.quantize_for", compared)
    assert fit_quantization(TARGETS["sim"], graph, data, AS_USUAL).how.wide
    assert len(made) < len(tried)


def test_weights_stay_as_they_are_where_it_is_not_they_that_make_the_noise() -> None:
    """The input has an outlier; steps of it are larger than all other values."""
    graph, data = with_large_weights()
    layer = graph.nodes[0].op
    assert isinstance(layer, Dense)
    layer.weight[:, 0] = 0
    data["x"][:, 1] = 1e4
    layer.weight[:, 1] = 0
    seen: list[Quantization] = []
    assert not choose_options(graph, data, AS_USUAL, by(graph, seen)).how.wide
    assert any(how.wide for how in seen)


def uneven_rows(spread: float) -> tuple[Graph, Arrays]:
    """A dense layer whose channels span `spread` in their weights."""
    rng = np.random.default_rng(4)
    b = Builder((1, 1024))
    rows = np.geomspace(1, spread, 16).astype(np.float32)
    layer = dense(rng, 1024, 16)
    layer = replace(layer, weight=layer.weight * rows[:, None], bias=layer.bias * 0)
    graph = b.graph(b.put(layer, "x"))
    return graph, {"x": np.clip(samples_for(graph, 0, 40)["x"], -2, 2)}


def has_own_shifts(quantized: QuantGraph) -> bool:
    layers = [node.op for node in quantized.nodes if isinstance(node.op, Biased)]
    return any(len({*op.shift[:16].tolist()}) > 1 for op in layers)


def test_shifts_are_shared_where_accuracy_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(option_search, "LITTLE_DB", 30.0)
    graph, data = uneven_rows(2.0)
    how = Quantization(fit_weights=False)
    usual, chosen = quantize(graph, data, how), choose_options(graph, data, how, by(graph, []))
    assert has_own_shifts(usual)
    assert chosen.how == replace(how, share_shifts=True)
    assert not has_own_shifts(chosen.quantized)
    assert chosen.why is not None
    assert "channels share shifts" in chosen.why
    before, after = (ratio_db(graph, each, data) for each in (usual, chosen.quantized))
    assert before > after > before - 3


def test_blocks_of_wide_weights_share_their_shifts_already(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(option_search, "LITTLE_DB", 30.0)
    graph, data = uneven_rows(64.0)
    seen: list[Quantization] = []

    def in_small_blocks(some: Arrays, how: Quantization) -> QuantGraph:
        seen.append(how)
        return quantize(graph, some, how, block=4)

    how = Quantization(wide=("n0",), calibration="minmax", equalize=False)
    chosen = choose_options(graph, data, how, in_small_blocks)
    assert has_own_shifts(chosen.quantized), "each block its own"
    assert seen == [how]
    assert chosen.why is None


def test_a_network_with_little_noise_is_made_after_one_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, data = uneven_rows(2.0)
    monkeypatch.setattr(option_search, "LITTLE_DB", 90.0)
    runs: list[Arrays] = []
    monkeypatch.setattr(
        "driver.network.quantize.refining.moments",
        lambda *_: pytest.fail("refined layer after layer"),
    )

    def counted(*args: Any, **options: Any) -> Any:
        runs.append(args[1])
        return run_float(*args, **options)

    monkeypatch.setattr("driver.network.quantize.calibrate.run_float", counted)
    monkeypatch.setattr(option_search, "run_float", counted)
    plain = Quantization(share_shifts=False, correct_bias=False, fit_weights=False)
    fitted = fit_quantization(TARGETS["sim"], graph, data, Quantization(activations="symmetric"))
    assert fitted.how == Quantization(activations="symmetric")
    assert len(runs) == 1
    fresh = {"x": samples_for(graph, 1, 40)["x"].clip(-2, 2)}
    monkeypatch.undo()
    least = ratio_db(graph, quantize(graph, data, plain), fresh)
    assert ratio_db(graph, fitted.quantized, fresh) > least - 1


@pytest.mark.parametrize(("spread", "fitted_layers"), [(1.3, 0), (2.0, 1)])
def test_shifts_are_shared_at_once_where_accuracy_has_room(
    spread: float, fitted_layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights are fitted where what they lose by the nearest ones is too much."""
    monkeypatch.setattr(option_search, "LITTLE_DB", 30.0)
    met: list[object] = []

    def noted(*args: Any) -> Any:
        met.append(args)
        return moments(*args)

    monkeypatch.setattr("driver.network.quantize.refining.moments", noted)
    graph, data = uneven_rows(spread)
    fitted = fit_quantization(TARGETS["sim"], graph, data, AS_USUAL)
    assert fitted.how == replace(AS_USUAL, share_shifts=True)
    assert not has_own_shifts(fitted.quantized)
    assert "channels share shifts" in fitted.notes[0]
    assert len(met) == fitted_layers
    kept = fit_quantization(TARGETS["sim"], graph, data, Quantization(share_shifts=False))
    assert has_own_shifts(kept.quantized)


@pytest.mark.parametrize(
    "how",
    [
        Quantization(fit_weights=False),
        Quantization(correct_bias=False),
        Quantization(
            calibration="minmax", equalize=False, share_shifts=False, wide=(), wide_activations=()
        ),
    ],
)
def test_what_the_user_asks_for_is_done_layer_after_layer(
    how: Quantization, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, data = uneven_rows(2.0)
    monkeypatch.setattr(
        "driver.network.quantize.fitting.refined_at_once", lambda *_: pytest.fail("made at once")
    )
    fit_quantization(TARGETS["sim"], graph, data, how)


def test_noise_is_seen_before_the_softmax_that_hides_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One class wins whatever the noise: the scores show it, the probabilities do not."""
    graph, data = with_large_weights()
    first, last = (node.op for node in graph.nodes)
    assert isinstance(last, Dense)
    b = Builder((1, 48))
    most = 5 * np.abs(run_float(graph, data)["out0"]).max()
    last = replace(last, bias=last.bias + most * np.eye(10, dtype=np.float32)[0])
    sure = b.graph(b.put(Softmax(axis=1), b.put(last, b.put(first, "x"))))
    met: list[object] = []

    def noted(*args: Any) -> Any:
        met.append(args)
        return moments(*args)

    monkeypatch.setattr("driver.network.quantize.refining.moments", noted)
    made = fit_quantization(TARGETS["sim"], sure, data, AS_USUAL).quantized
    assert ratio_db(sure, made, data) > 60
    assert met, "refined layer after layer"


def test_a_line_says_that_equalization_changed_nothing() -> None:
    graph, data = with_outliers()
    (note,) = fit_quantization(TARGETS["sim"], graph, data, Quantization(equalize=True)).notes[-1:]
    assert note.startswith("--equalize changed nothing")


def test_without_data_nothing_is_chosen() -> None:
    graph, _ = with_outliers()
    given = replace(graph, ranges=dict.fromkeys(graph.shapes, 4.0))
    fitted = fit_quantization(TARGETS["sim"], given, None, AS_USUAL)
    assert (fitted.how, fitted.notes) == (AS_USUAL, ())


def test_a_chosen_way_says_why() -> None:
    graph, data = with_outliers()
    chosen = choose_options(graph, data, AS_USUAL, by(graph, []))
    assert fit_quantization(TARGETS["sim"], graph, data, AS_USUAL).notes == (chosen.why,)
