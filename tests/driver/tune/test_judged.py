"""The step that judges: what is said, what stays in float, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.networks.onnx_models import model, node, saved
from tilefarm.clock import SystemClock
from tilefarm.errors import SettingsError
from tilefarm.target import TARGETS
from tilefarm.watch.operations import Operations

from driver.network.partition.partitioner import partition_network
from driver.network.quantize.fitting import fit_quantization
from driver.network.quantize.options import Quantization
from driver.run_events import Notice, StepEnded
from driver.stop_token import StopToken
from driver.tune.judged import JudgedNetwork, judge_promise
from driver.tune.preparing import read
from driver.tune.run_context import RunContext
from driver.tune.settings import TuneSettings
from driver.tune.watched import watched

HALVED = Quantization(calibration="percentile:50")
"""Cuts off half of all values: int8 is no good then."""

Judge = Callable[..., tuple[JudgedNetwork, list[str]]]


@pytest.fixture(autouse=True)
def _nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schedule takes a second for each kernel; `test_plan_kernels` has what comes of it."""
    nothing = nullcontext(lambda _workload: None)
    monkeypatch.setattr("driver.tune.judged.simulated", lambda _target: nothing)


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """Judges a network of two layers; what came of it, and what was said."""
    return judging(tmp_path)


def judging(tmp_path: Path, *, large: float = 1.0, outlier: float = 1.0) -> Judge:
    """That; the weights of one operand, which is faint, or one sample can be so large."""
    rng = np.random.default_rng(1)
    weights = {name: rng.normal(size=(8, 8)).astype(np.float32) for name in ("v", "w")}
    weights["v"][0] *= large
    nodes = [
        node("MatMul", ["x", "v"], "s"),
        node("Relu", ["s"], "r"),
        node("MatMul", ["r", "w"], "y"),
    ]
    file = saved(model(nodes, weights, x=(1, 8)), tmp_path)
    samples = rng.normal(size=(60, 8)).astype(np.float32)
    samples[:, 0] /= large**2
    samples[0] *= outlier
    np.savez(tmp_path / "calibrate.npz", x=samples[:20])
    exact = np.maximum(samples @ weights["v"], 0) @ weights["w"]
    labels = {
        "classes": exact.argmax(axis=1),
        "values": exact,
        "one": np.zeros(60, int),
        "far": exact + 100,
    }
    (tmp_path / "out").mkdir()

    def run(
        how: Quantization, *, of: str | None = "values", samples_from: int = 20, **more: Any
    ) -> tuple[JudgedNetwork, list[str]]:
        evaluate = tmp_path / "evaluate.npz"
        given = {} if of is None else {"y": labels[of][samples_from:]}
        np.savez(evaluate, x=samples[samples_from:], **given)
        settings = TuneSettings(
            model=file,
            calibrate=tmp_path / "calibrate.npz",
            evaluate=evaluate,
            quantization=how,
            out=tmp_path,
            **more,
        )
        told: list[object] = []
        clock = SystemClock()
        with ExitStack() as owned:
            watch = owned.enter_context(
                watched(Operations(), told.append, run_id="t", clock=clock, wall_origin=0.0)
            )
            context = RunContext(
                settings=settings,
                clock=clock,
                watch=watch,
                stop=StopToken(),
                scratch=tmp_path,
                run_id="t",
                wall_origin=0.0,
            )
            files = read(context, TARGETS["sim"])
            target = TARGETS["sim"]
            given_inputs = files.calibration.inputs if files.calibration else None
            fitted = fit_quantization(target, files.graph, given_inputs, how)
            network = partition_network(fitted.quantized, target)
            judged = judge_promise(context, files, target, fitted, network)
        words = [event.text for event in told if isinstance(event, Notice)]
        words += [e.detail for e in told if isinstance(e, StepEnded) and e.step == "judge"]
        return judged, words

    return run


def test_a_promise_that_is_kept_is_told_in_a_line(judge: Judge) -> None:
    judged, said = judge(Quantization())
    assert judged.judgement is not None
    assert judged.judgement.is_kept
    assert (judged.blamed, judged.noise, judged.plans) == ((), (), ())
    (words,) = said
    assert "points of R2 of labels lost" in words
    assert "40 samples)" in words


def test_a_broken_one_is_a_warning_with_layers_and_price(judge: Judge) -> None:
    judged, said = judge(HALVED)
    assert judged.judgement is not None
    assert not judged.judgement.is_kept
    warning = said[0]
    assert "promise of 1 point broken" in warning
    assert "clipping" in warning
    assert judged.blamed[0].name in warning
    assert "--max-loss 1" in warning
    assert "million MACs on the processor" in warning
    assert all(step.place == "accelerator" for step in judged.network.steps if step.macs)
    assert len(judged.noise) == 2


def test_layers_whose_weights_are_to_blame_can_have_wide_ones(tmp_path: Path) -> None:
    """Beside one large weight a channel the others have few of 8 bits."""
    judge = judging(tmp_path, large=100.0)
    judged, (warning, *_) = judge(Quantization(wide=()))
    bad = judged.blamed[0]
    assert bad.source == "weights"
    assert f"try: --wide-weights {bad.name}" in warning
    better, _ = judge(Quantization(wide=(bad.name,)))
    assert judged.judgement is not None
    assert better.judgement is not None
    assert better.judgement.points < judged.judgement.points / 4
    again, said = judge(Quantization(wide=("*",), calibration="percentile:50"))
    assert not any("--wide-weights" in words for words in said), "they have them already"
    assert again.blamed


def test_layers_whose_rounding_is_to_blame_can_have_wide_results(tmp_path: Path) -> None:
    """One sample is so large that the others have few of the levels of 8 bits."""
    judge = judging(tmp_path, outlier=100.0)
    how = Quantization(wide=("*",), activations="symmetric")
    judged, (warning, *_) = judge(how)
    first = next(each for each in judged.blamed if each.name == judged.quantized.nodes[1].name)
    assert first.source == "rounding"
    assert f"--wide-activations {first.name}" in warning
    better, said = judge(replace(how, wide_activations=(first.name,)))
    assert not any("--wide-activations" in words for words in said), "it has them already"
    assert better.judgement is not None
    assert judged.judgement is not None
    assert better.judgement.points < judged.judgement.points * 0.7


def test_layers_stay_in_float_where_the_user_wants_it(judge: Judge) -> None:
    judged, said = judge(HALVED, max_loss=0.5)
    assert judged.judgement is not None
    assert judged.judgement.is_kept
    assert judged.plans[0].remedies == ()
    assert judged.plans[0].points > 0.5
    assert any(step.place == "cpu" for step in judged.network.steps if step.macs)
    assert "promise of 0.5 points broken: " in said[0]
    assert "layers are tried with 16 bits and in float" in said[0]
    assert "in float on the processor" in said[-1]
    assert "times the cycles" in said[-1]
    samples = 40
    again = judged.integers.first(samples)
    assert np.isfinite(next(iter(again.values()))).all()


def test_the_user_who_wants_a_promise_gets_the_cheapest_remedy(tmp_path: Path) -> None:
    judge = judging(tmp_path, large=100.0)
    plain, _ = judge(Quantization(wide=()))
    judged, said = judge(Quantization(wide=()), max_loss=1.0)
    assert judged.judgement is not None
    assert judged.judgement.is_kept
    best = min((plan for plan in judged.plans if plan.points <= 1.0), key=lambda p: p.cycles)
    assert (best.wide, best.floats) == ((plain.blamed[0].name,), ())
    assert f"kept with weights of 16 bits in {plain.blamed[0].name} (" in said[-1]
    assert "times the cycles, estimated)" in said[-1]
    assert judged.best == best
    assert all(step.place == "accelerator" for step in judged.network.steps if step.macs)


def test_a_promise_with_room_saves_cycles(tmp_path: Path) -> None:
    """Shifts of channels that are unlike cost cycles; what shared ones lose may be lost here."""
    judge = judging(tmp_path)
    judged, _ = judge(Quantization(share_shifts=None), max_loss=50.0)
    assert [plan.shares_shifts for plan in judged.plans] == [False, True]
    judged, _ = judge(Quantization(share_shifts=False), max_loss=50.0)
    assert [plan.shares_shifts for plan in judged.plans] == [False]


def test_a_promise_of_classes_is_judged_by_what_is_expected_too(judge: Judge) -> None:
    """One sample of 40 is 2.5 points: none that changes does not say that few would."""
    judged, _ = judge(Quantization(), of="classes", max_loss=5.0)
    (first, *_) = judged.plans
    counted = judged.judgement
    assert counted is not None
    assert 0 < first.points != counted.points


def test_layers_that_go_to_float_leave_their_wide_weights(judge: Judge) -> None:
    """Named ones would be refused, being in float, and patterns leave them out."""
    names = tuple(each.name for each in judge(HALVED)[0].blamed)
    for wide in (names, ("*",)):
        judged, _ = judge(replace(HALVED, wide=wide), max_loss=0.5)
        assert judged.judgement is not None
        assert judged.judgement.is_kept
        assert len(judged.plans) > 1


def test_what_cannot_be_kept_says_what_comes_nearest(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "driver.network.quantize.layer_remedies.has_no_kernel", lambda _op: "for this test"
    )
    with pytest.raises(SettingsError, match=r"cannot be kept: .* nearest comes .* with ") as caught:
        judge(HALVED, max_loss=0.5)
    assert "--max-loss" in caught.value.hint


def test_a_promise_needs_samples_that_did_not_calibrate(judge: Judge) -> None:
    with pytest.raises(SettingsError, match="there is 1") as caught:
        judge(Quantization(), max_loss=1.0, samples_from=59)
    assert "--evaluate" in caught.value.hint


def test_a_promise_that_hangs_on_single_samples_is_told_so(judge: Judge) -> None:
    _, said = judge(Quantization(), of="classes", max_loss=2.0)
    assert "each of 40 samples is 2.5 points: a promise of 2 points hangs on single ones" in said[0]
    assert "with 100 or more" in said[0]
    _, said = judge(Quantization(), of="classes", max_loss=5.0)
    assert not any("hangs on" in words for words in said)


def test_one_sample_says_next_to_nothing(judge: Judge) -> None:
    _, said = judge(Quantization(), of=None, samples_from=59)
    assert "1 sample to evaluate says next to nothing" in said[0]


def test_labels_of_one_class_are_left_aside(judge: Judge) -> None:
    judged, said = judge(Quantization(), of="one")
    assert "no better than always the commonest class" in said[0]
    assert judged.judgement is not None
    assert judged.judgement.title == "top-1 of float"


def test_values_on_another_scale_are_left_aside(judge: Judge) -> None:
    judged, said = judge(Quantization(), of="far")
    assert "no better than always the labels' mean" in said[0]
    assert "try: labels scaled as the network's answers" in said[0]
    assert judged.judgement is not None
    assert judged.judgement.title == "R2 of float"


def test_labels_of_classes_are_used(judge: Judge) -> None:
    judged, _ = judge(Quantization(), of="classes")
    assert judged.judgement is not None
    assert (judged.judgement.title, judged.judgement.floats) == ("top-1 of labels", 100.0)
