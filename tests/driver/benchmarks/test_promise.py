"""`tilefarm bench promise` on a folder made here: what is chosen, judged, compared and refused."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kit.networks.onnx_models import model, node, saved

from driver import cli
from driver.benchmarks.promise.command import document, figures, tables
from driver.benchmarks.promise.keeping import Broken, PromiseResult, Wanted, Way, keep
from driver.benchmarks.zoo.recipes import ZooRecipe
from driver.benchmarks.zoo.samples import Archive

ROWS = ZooRecipe(task="rows", data=Archive("rows.npz"), calibrate=20)


@pytest.fixture(autouse=True)
def _nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates cannot tell shared shifts from others, whose cycles are not what is tested here."""
    nothing = nullcontext(lambda _workload: None)
    monkeypatch.setattr("driver.tune.judged.simulated", lambda _target: nothing)


def wanted(folder: Path, points: float) -> Wanted:
    """Two layers, of rows whose labels are what float says: half of the classes are near ties."""
    rng = np.random.default_rng(1)
    v, w = (rng.normal(size=(16, 16)).astype(np.float32) for _ in range(2))
    w[:, 1::2] = w[:, ::2] * np.float32(1.002)
    nodes = [
        node("MatMul", ["x", "v"], "s"),
        node("Relu", ["s"], "r"),
        node("MatMul", ["r", "w"], "y"),
    ]
    file = saved(model(nodes, {"v": v, "w": w}, x=(1, 16)), folder)
    x = rng.normal(size=(121, 16)).astype(np.float32)
    np.savez(folder / "rows.npz", X=x, Y=(np.maximum(x @ v, 0) @ w).argmax(axis=1))
    return Wanted(
        name="rows", model=file, recipe=ROWS, data=folder, points=points, most=1000, target="sim"
    )


def test_a_promise_is_kept_on_half_and_judged_on_the_other(tmp_path: Path) -> None:
    end = keep(wanted(tmp_path, points=2.0))
    assert isinstance(end, PromiseResult), end
    assert (end.samples, end.floats) == (50, 100.0)
    assert end.integers.chosen > 2.0, "this network is made to lose in integers"
    assert end.kept.chosen <= 2.0
    assert (end.integers.layers, end.integers.spread > 0) == (0, True)
    assert 1 <= end.kept.layers <= 2
    assert keep(wanted(tmp_path, points=2.0)) == end


def test_nothing_is_in_float_where_nothing_is_lost(tmp_path: Path) -> None:
    end = keep(wanted(tmp_path, points=100.0))
    assert isinstance(end, PromiseResult)
    assert end.kept == end.integers == end.bad
    assert (end.share, end.holds) == (1.0, True)


def test_what_cannot_be_tried_is_a_reason(tmp_path: Path) -> None:
    absent = replace(wanted(tmp_path, 1.0), recipe=replace(ROWS, data=Archive("none.npz")))
    end = keep(absent)
    assert isinstance(end, Broken)
    assert "none.npz" in end.why


def way(*, chosen: float, other: float, cycles: int = 100, layers: int = 1) -> Way:
    return Way(layers=layers, cycles=cycles, chosen=chosen, other=other, spread=0.5)


def row(kept: Way) -> PromiseResult:
    return PromiseResult(
        name="net",
        points=0.5,
        samples=10,
        how="floats in 3 layers",
        floats=90.0,
        integers=way(chosen=3, other=3, layers=0),
        kept=kept,
        bad=way(chosen=0, other=0, cycles=400),
    )


@pytest.mark.parametrize(
    ("kept", "holds"),
    [
        (way(chosen=0.5, other=0.5), True),
        (way(chosen=0.5, other=1.5), True),
        (way(chosen=0.5, other=1.6), False),
        (way(chosen=0.6, other=0.0), False),
    ],
)
def test_a_promise_holds_as_far_as_other_samples_can_tell(kept: Way, holds: bool) -> None:
    assert row(kept).holds is holds


def test_figures_and_tables_say_what_is_missed() -> None:
    good = row(way(chosen=0.0, other=0.0, cycles=100))
    found = figures([good, good])
    assert all(figure.is_met for figure in found)
    assert found[2].value == pytest.approx(0.25)
    bad: list[PromiseResult | Broken] = [good, Broken("other", "cannot be kept")]
    assert [figure.is_met for figure in figures(bad)] == [False, True, True, True]
    text = "\n".join(tables(bad, figures(bad)))
    for words in ("net", "0.25", "BROKEN  other: cannot be kept", "missed"):
        assert words in text
    assert not all(figure.is_met for figure in figures([]))
    assert [figure.value for figure in figures([row(way(chosen=0.0, other=1.5))])][:2] == [1, 0]
    assert json.loads(json.dumps(document(bad, figures(bad))))["broken"] == {
        "other": "cannot be kept"
    }
    assert document([], figures([]))["figures"][2]["value"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nosuch"], "no network 'nosuch'"),
        (["mnist-8"], "mnist-8.onnx"),
        (["--max-loss", "-1"], "--max-loss -1: not a number of points from 0 to 100"),
    ],
)
def test_bad_input_is_a_line(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "promise", "--data", str(tmp_path), *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.splitlines()[-1].startswith("  try: ")
